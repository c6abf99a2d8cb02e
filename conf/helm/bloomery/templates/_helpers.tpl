{{- define "bloomery.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "bloomery.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "bloomery.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "bloomery.selectorLabels" . }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "bloomery.image" -}}
{{- $name := printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- if .Values.image.registry -}}{{ .Values.image.registry }}/{{ $name }}{{- else -}}{{ $name }}{{- end -}}
{{- end -}}

{{- define "bloomery.secret" -}}
{{- default (include "bloomery.fullname" .) .Values.auth.existingSecret -}}
{{- end -}}

{{- define "bloomery.replicas" -}}
{{- if .Values.cluster.enabled -}}
{{- .Values.cluster.nodes -}}
{{- else if .Values.replica.enabled -}}
{{- add 1 .Values.replica.replicas -}}
{{- else -}}
1
{{- end -}}
{{- end -}}
