#ifndef SB_HOST_CLI_COMPLETE_H
#define SB_HOST_CLI_COMPLETE_H

/* Print what may stand for the last of the words, one a line; "files" alone = names of files. */
void complete_words(int argc, char **argv);

#endif
