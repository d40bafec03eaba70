# cadastre completion bash > /etc/bash_completion.d/cadastre
_cadastre() {
	local line="${COMP_LINE:0:COMP_POINT}" word prefix candidate
	local -a words
	read -ra words <<<"$line"
	[[ "$line" == *[[:space:]] ]] && words+=("")
	word="${words[-1]}"
	prefix="${word%"${word##*[:=]}"}" # bash completes what follows a colon alone
	COMPREPLY=()
	while IFS= read -r candidate; do
		candidate="$(printf '%q' "$candidate")"
		COMPREPLY+=("${candidate#"$prefix"}")
	done < <("${words[0]}" __complete "${words[@]:1}" 2>/dev/null)
}
complete -o default -F _cadastre cadastre
