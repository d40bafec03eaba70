{{- define "cadastre.selector" -}}
app.kubernetes.io/name: cadastre
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "cadastre.labels" -}}
{{ include "cadastre.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}
