#compdef cadastre
# cadastre completion zsh > "${fpath[1]}/_cadastre"
_cadastre() {
	local -a candidates
	candidates=("${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	if [[ -n "${candidates[1]}" ]]; then
		compadd -a candidates
	else
		_files
	fi
}
if [[ "${funcstack[1]}" == _cadastre ]]; then
	_cadastre "$@"
else
	compdef _cadastre cadastre
fi
