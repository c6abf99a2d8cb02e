{{/* Kubernetes allows 63 characters, and appends up to 11 to the name of a StatefulSet. */}}
{{- define "bloomery.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
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

{{/* Helm reads each number of a values file as a float64, which it prints as 1e+09. */}}
{{- define "bloomery.scalar" -}}
{{- if and (kindIs "float64" .) (eq (float64 (int64 .)) .) -}}
{{- int64 . -}}
{{- else -}}
{{- toString . -}}
{{- end -}}
{{- end -}}

{{- define "bloomery.image" -}}
{{- $tag := include "bloomery.scalar" (default .Chart.AppVersion .Values.image.tag) -}}
{{- $name := printf "%s:%s" .Values.image.repository $tag -}}
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
