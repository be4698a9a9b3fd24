#ifndef SB_HOST_CLI_CMD_CONFIG_H
#define SB_HOST_CLI_CMD_CONFIG_H
/* Parts of `sendbox config` with options of their own. Return: an exit status. */

int cmd_config_list(int argc, char **argv);
int cmd_config_create(int argc, char **argv);

#endif
