/*
 * `sendbox completions SHELL`: a script for the shell. The scripts know nothing themselves: they ask
 * `sendbox completions words WORD...` what may stand next, so that agents and instances are those of
 * the moment.
 */
#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "cli.h"
#include "complete.h"
#include "conf_fail.h"
#include "dirs.h"
#include "options.h"

static const char bash_script[] =
	"# bash completion for sendbox: eval \"$(sendbox completions bash)\"\n"
	"_sendbox()\n"
	"{\n"
	"\tlocal line=${COMP_LINE:0:COMP_POINT} cur cut one\n"
	"\tlocal -a words\n"
	"\tread -ra words <<<\"$line\"\n"
	"\t[[ $line == *[[:space:]] ]] && words+=(\"\")\n"
	"\tcur=${words[-1]}\n"
	"\tcut=${cur%\"${cur##*[:=]}\"} # readline replaces only what follows the last of these\n"
	"\tCOMPREPLY=()\n"
	"\twhile IFS= read -r one; do\n"
	"\t\tif [ \"$one\" = files ]; then\n"
	"\t\t\tcompopt -o filenames 2>/dev/null\n"
	"\t\t\t[[ $cur == --*=* ]] && cur=${cur#*=}\n"
	"\t\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
	"\t\t\treturn\n"
	"\t\tfi\n"
	"\t\t[[ $one == \"$cur\"* ]] && COMPREPLY+=(\"${one#\"$cut\"}\")\n"
	/* a "./sendbox" of a project is not run by looking for its words */
	"\tdone < <(\"$([[ ${words[0]} == /* ]] && echo \"${words[0]}\" || echo sendbox)\" completions words -- \"${words[@]:1}\" 2>/dev/null)\n"
	"}\n"
	"complete -F _sendbox sendbox\n";

static const char zsh_script[] =
	"#compdef sendbox\n"
	"# zsh completion for sendbox: eval \"$(sendbox completions zsh)\", or as _sendbox in $fpath\n"
	"_sendbox()\n"
	"{\n"
	"\tlocal -a found\n"
	"\tlocal tool=sendbox\n"
	"\t[[ ${words[1]} == /* ]] && tool=${words[1]}\n"
	"\tfound=(${(f)\"$(\"$tool\" completions words -- \"${(@)words[2,CURRENT]}\" 2>/dev/null)\"})\n"
	"\tif [[ \"$found[1]\" = files ]]; then\n"
	"\t\t_files\n"
	"\telse\n"
	"\t\tcompadd -- $found\n"
	"\tfi\n"
	"}\n"
	"if [[ \"$funcstack[1]\" = _sendbox ]]; then\n"
	"\t_sendbox \"$@\"\n"
	"else\n"
	"\tcompdef _sendbox sendbox\n"
	"fi\n";

static const char fish_script[] =
	"# fish completion for sendbox: sendbox completions fish | source\n"
	"function __sendbox_words\n"
	"\tset -l all (commandline -opc) (commandline -ct)\n"
	"\tset -l tool sendbox\n"
	"\tstring match -q '/*' -- $all[1]; and set tool $all[1]\n"
	"\tset -l found ($tool completions words -- $all[2..-1] 2>/dev/null)\n"
	"\tif test \"$found\" = files\n"
	"\t\t__fish_complete_path (commandline -ct)\n"
	"\telse\n"
	"\t\tprintf '%s\\n' $found\n"
	"\tend\n"
	"end\n"
	"complete -c sendbox -f -a '(__sendbox_words)'\n";

static int help(void)
{
	printf("usage: sendbox completions bash|zsh|fish\n\nPrint what completes words of sendbox in that "
	       "shell.\n\n  bash: eval \"$(sendbox completions bash)\" in ~/.bashrc\n"
	       "  zsh:  eval \"$(sendbox completions zsh)\" in ~/.zshrc, after compinit\n"
	       "  fish: sendbox completions fish | source, in config.fish\n");
	return conf_flush(SB_EXIT_OK);
}

int cmd_completions(int argc, char **argv)
{
	static const struct {
		const char *name;
		const char *text;
	} shells[] = { { "bash", bash_script }, { "zsh", zsh_script }, { "fish", fish_script } };

	if (argc < 1)
		return help(), SB_EXIT_USAGE;
	if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0)
		return help();
	if (strcmp(argv[0], "words") == 0) {
		int skip = argc > 1 && strcmp(argv[1], "--") == 0 ? 2 : 1;

		complete_words(argc - skip, argv + skip);
		return conf_flush(SB_EXIT_OK);
	}
	for (size_t i = 0; i < SB_ARRAY_LEN(shells); i++) {
		if (strcmp(argv[0], shells[i].name) != 0)
			continue;
		if (argc > 1) {
			cli_error("completions: one shell, not \"%.60s\" too", argv[1]);
			return SB_EXIT_USAGE;
		}
		printf("%s", shells[i].text);
		return conf_flush(SB_EXIT_OK);
	}
	cli_error("completions: \"%.60s\" is none of bash, zsh, fish", argv[0]);
	return SB_EXIT_USAGE;
}
