# cadastre completion fish > ~/.config/fish/completions/cadastre.fish
function __cadastre_complete
	set -l words (commandline -opc)
	$words[1] __complete $words[2..-1] (commandline -ct) 2>/dev/null
end
complete -c cadastre -f -a '(__cadastre_complete)'
complete -c cadastre -n 'not __cadastre_complete | string length -q' -F
