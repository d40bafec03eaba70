package chart

import (
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// The program starts with the arguments, variables and files of the pods. It
// answers their probes, and serves metrics where Prometheus looks for them.
func TestPodsServe(t *testing.T) {
	for name, with := range cases {
		t.Run(name, func(t *testing.T) {
			pod := objects(t, with).deployment.Spec.Template
			of := pod.Spec.Containers[0]
			served, client := certificate(t)
			running := podContainer(t, pod.Spec, served)
			checkVariables(t, running.env)
			addresses, _ := running.start(t)
			for _, probe := range []*corev1.Probe{of.StartupProbe, of.LivenessProbe, of.ReadinessProbe} {
				port, listen := containerPort(t, of, probe.HTTPGet.Port.StrVal), running.env["CADASTRE_LISTEN"]
				if port != portOf(t, listen) {
					t.Errorf("the probe of %s asks port %d, the server listens on %s", probe.HTTPGet.Path, port, listen)
				}
				scheme := strings.ToLower(string(probe.HTTPGet.Scheme))
				address := scheme + "://" + addresses["serving"] + probe.HTTPGet.Path
				if status := get(t, client, address); status != http.StatusOK {
					t.Errorf("%s: %d", address, status)
				}
			}
			checkMetrics(t, pod.Annotations, running.env, addresses["measuring"])
		})
	}
}

// checkMetrics asks for the metrics as the annotations of a pod say, without a
// token.
func checkMetrics(t *testing.T, annotations, env map[string]string, address string) {
	t.Helper()
	if isScraped := annotations["prometheus.io/scrape"] == "true"; isScraped != (address != "") {
		t.Errorf("annotations %v, metrics at %q", annotations, address)
	}
	if address == "" {
		return
	}
	if port := annotations["prometheus.io/port"]; !strings.HasSuffix(env["CADASTRE_METRICS_LISTEN"], ":"+port) {
		t.Errorf("Prometheus asks port %s, the variables are %v", port, env)
	}
	address = "http://" + address + annotations["prometheus.io/path"]
	if status := get(t, http.DefaultClient, address); status != http.StatusOK {
		t.Errorf("%s: %d", address, status)
	}
}

// podContainer returns the container of a pod. Its Secrets have the files that
// the chart asks for, and its claims are empty folders.
func podContainer(t *testing.T, spec corev1.PodSpec, served map[string]string) container {
	t.Helper()
	folders := map[string]string{}
	for _, volume := range spec.Volumes {
		folder := t.TempDir()
		folders[volume.Name] = folder
		if volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			switch source.Secret.Name {
			case "cadastre":
				secrets(t, folder, "sqlite://"+filepath.Join(t.TempDir(), "cadastre.db"))
			case "served":
				write(t, folder, "tls.crt", served["tls.crt"])
				write(t, folder, "tls.key", served["tls.key"])
			}
		}
	}
	of := spec.Containers[0]
	running := container{args: of.Args, env: map[string]string{}, mounts: map[string]string{}}
	for _, mount := range of.VolumeMounts {
		running.mounts[mount.MountPath] = folders[mount.Name]
	}
	for _, variable := range of.Env {
		running.env[variable.Name] = variable.Value
	}
	return running
}

// certificate returns the files of a TLS Secret, and a client that trusts them.
func certificate(t *testing.T) (map[string]string, *http.Client) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	t.Cleanup(server.Close)
	of := server.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(of.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"tls.crt": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: of.Certificate[0]})),
		"tls.key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})),
	}, server.Client()
}
