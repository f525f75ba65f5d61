"""The scripts that make a shell ask dagflow for completions."""

BASH = """_dagflow_completion() {
    local IFS=$'\\n' type value
    COMPREPLY=()
    while IFS=',' read -r type value; do
        case $type in
            file) compopt -o default ;;
            plain) COMPREPLY+=("$value"); [[ $value == *[=.] ]] && compopt -o nospace ;;
        esac
    done < <(env COMP_LINE="$COMP_LINE" COMP_POINT="$COMP_POINT" COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD="$COMP_CWORD" \\
        _DAGFLOW_COMPLETE=bash_complete "$1" 2>/dev/null)
}
complete -o nosort -F _dagflow_completion dagflow
"""

ZSH = """_dagflow_completion() {
    local -a plain open response
    local type value help
    response=("${(@f)$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) _DAGFLOW_COMPLETE=zsh_complete \\
        ${words[1]} 2>/dev/null)}")
    for type value help in ${response}; do
        if [[ $type == file ]]; then
            [[ ${words[CURRENT]} == *=* ]] && compset -P '*='
            _path_files -f
        elif [[ $value == *[=.] ]]; then
            open+=("$value")
        elif [[ $type == plain ]]; then
            plain+=("${value//:/\\\\:}:$help")
        fi
    done
    (( $#plain )) && _describe -V dagflow plain -U
    (( $#open )) && compadd -U -S '' -V settings -a open
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _dagflow_completion "$@"; else compdef _dagflow_completion dagflow; fi
"""

FISH = """function _dagflow_completion
    for line in (env COMP_WORDS=(commandline -cp) COMP_CWORD=(commandline -t) _DAGFLOW_COMPLETE=fish_complete \\
            (commandline -opc)[1] 2>/dev/null)
        set -l parts (string split -m 1 ',' -- $line)
        switch $parts[1]
            case file
                __fish_complete_path $parts[2]
            case plain
                echo $parts[2]
        end
    end
end
complete --no-files --command dagflow --arguments '(_dagflow_completion)'
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}

INSTALL = {
    "bash": """eval "$(dagflow completion bash)"  # in ~/.bashrc; bash 4.4 or newer""",
    "zsh": """eval "$(dagflow completion zsh)"  # in ~/.zshrc, after compinit""",
    "fish": """dagflow completion fish | source  # in ~/.config/fish/config.fish""",
}
"""The line of a start file that installs the script."""
