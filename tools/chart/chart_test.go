// Package chart renders the Helm chart and reads the compose file of deploy/. It
// runs the program as their containers would.
package chart

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

const chartFolder = "../../deploy/chart"

// values are values of the chart, or a mapping in them.
type values = map[string]any

// cases are values with which the chart must work, by their names.
var cases = map[string]values{
	"PostgreSQL": {},
	"SQLite":     {"sqliteClaim": "cadastre", "replicas": 1},
	"everything": {
		"replicas": 3, "strategy": "RollingUpdate", "tlsSecret": "served", "metrics": true,
		"imagePullSecrets": []any{values{"name": "registry"}},
		"env":              values{"CADASTRE_CONSOLE": "true", "CADASTRE_TRUSTED_PROXY": "10.0.0.0/8"},
		"ingress": values{"host": "cadastre.example.org", "className": "nginx", "tlsSecret": "public",
			"annotations": values{"nginx.ingress.kubernetes.io/backend-protocol": "HTTPS"}},
	},
}

// render returns the files of the chart with these values.
func render(with values) (map[string]string, error) {
	chart, err := loader.Load(chartFolder)
	if err != nil {
		return nil, err
	}
	given := values{"image": "registry.example.org/cadastre:1.0.0"}
	maps.Copy(given, with)
	release := chartutil.ReleaseOptions{Name: "cloud", Namespace: "clouds", IsInstall: true}
	all, err := chartutil.ToRenderValues(chart, given, release, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(chart, all)
}

// rendered are the objects of a release. The last two can be nil.
type rendered struct {
	deployment *appsv1.Deployment
	service    *corev1.Service
	disruption *policyv1.PodDisruptionBudget
	ingress    *networkingv1.Ingress
}

// objects returns the objects of the chart with these values. A field that the
// API of Kubernetes does not have fails the test.
func objects(t *testing.T, with values) (all rendered) {
	t.Helper()
	files, err := render(with)
	if err != nil {
		t.Fatal(err)
	}
	strict := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	for name, text := range files {
		if strings.TrimSpace(text) == "" {
			continue
		}
		object, _, err := strict.Decode([]byte(text), nil, nil)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		if err := all.keep(object); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	return all
}

func (r *rendered) keep(object runtime.Object) error {
	switch of := object.(type) {
	case *appsv1.Deployment:
		r.deployment = of
	case *corev1.Service:
		r.service = of
	case *policyv1.PodDisruptionBudget:
		r.disruption = of
	case *networkingv1.Ingress:
		r.ingress = of
	default:
		return fmt.Errorf("no test checks a %T", object)
	}
	return nil
}

func TestHelmFindsNoFault(t *testing.T) {
	version, err := chartutil.ParseKubeVersion("v1.30.0")
	if err != nil {
		t.Fatal(err)
	}
	for name, with := range cases {
		given := values{"image": "cadastre"}
		maps.Copy(given, with)
		for _, message := range lint.AllWithKubeVersion(chartFolder, given, "clouds", version).Messages {
			if message.Severity > support.InfoSev {
				t.Errorf("%s: %v", name, message)
			}
		}
	}
}

// Each object selects the pods of the Deployment, and names ports that they have.
func TestObjectsFitTogether(t *testing.T) {
	for name, with := range cases {
		t.Run(name, func(t *testing.T) {
			all := objects(t, with)
			pod := all.deployment.Spec.Template
			selectors := map[string]*metav1.LabelSelector{
				"Deployment": all.deployment.Spec.Selector, "Service": {MatchLabels: all.service.Spec.Selector},
				"spread": pod.Spec.TopologySpreadConstraints[0].LabelSelector,
			}
			if all.disruption != nil {
				selectors["PodDisruptionBudget"] = all.disruption.Spec.Selector
			}
			for of, selector := range selectors {
				chosen, err := metav1.LabelSelectorAsSelector(selector)
				if err != nil || chosen.Empty() || !chosen.Matches(labels.Set(pod.Labels)) {
					t.Errorf("the %s selects %v, a pod has %v: %v", of, selector, pod.Labels, err)
				}
			}
			if isShared := *all.deployment.Spec.Replicas > 1; isShared != (all.disruption != nil) {
				t.Errorf("%d replicas, disruption budget %v", *all.deployment.Spec.Replicas, all.disruption)
			}
			port := all.service.Spec.Ports[0]
			containerPort(t, pod.Spec.Containers[0], port.TargetPort.StrVal)
			if all.ingress == nil {
				return
			}
			to := all.ingress.Spec.Rules[0].HTTP.Paths[0].Backend.Service
			if to.Name != all.service.Name || to.Port.Name != port.Name {
				t.Errorf("the Ingress leads to %v, the Service is %s with the port %s", to, all.service.Name, port.Name)
			}
		})
	}
}

// containerPort returns the number of a named port.
func containerPort(t *testing.T, of corev1.Container, name string) int32 {
	t.Helper()
	at := slices.IndexFunc(of.Ports, func(port corev1.ContainerPort) bool { return port.Name == name })
	if at < 0 {
		t.Fatalf("no port has the name %q: %v", name, of.Ports)
	}
	return of.Ports[at].ContainerPort
}

// A namespace that enforces the restricted standard accepts the pods. They can
// write nothing but a database, and have no token of the cluster.
func TestPodsAreRestricted(t *testing.T) {
	standard, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := podsecurity.LevelVersion{Level: podsecurity.LevelRestricted, Version: podsecurity.LatestVersion()}
	for name, with := range cases {
		pod := objects(t, with).deployment.Spec.Template
		result := policy.AggregateCheckResults(standard.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec))
		if !result.Allowed {
			t.Errorf("%s: %s", name, result.ForbiddenDetail())
		}
		if readOnly := pod.Spec.Containers[0].SecurityContext.ReadOnlyRootFilesystem; readOnly == nil || !*readOnly {
			t.Errorf("%s: the root of the container can be written", name)
		}
		if token := pod.Spec.AutomountServiceAccountToken; token == nil || *token {
			t.Errorf("%s: the pod has a token of the cluster", name)
		}
		if user := fmt.Sprint(*pod.Spec.SecurityContext.RunAsUser); user != readImage(t).user {
			t.Errorf("%s: the pod runs as %s, the image as %s", name, user, readImage(t).user)
		}
	}
}

// An upgrade stops all servers first, unless the values say otherwise.
func TestServersOfTwoVersionsAreApart(t *testing.T) {
	for name, want := range map[string]appsv1.DeploymentStrategyType{
		"PostgreSQL": "Recreate", "SQLite": "Recreate", "everything": "RollingUpdate",
	} {
		if got := objects(t, cases[name]).deployment.Spec.Strategy; got.Type != want {
			t.Errorf("%s: %v, want %s", name, got, want)
		}
	}
}

func TestBadValuesAreRefused(t *testing.T) {
	for want, with := range map[string]values{
		"/image":                            {"image": ""},
		"/secret":                           {"secret": ""},
		"/replicas":                         {"replicas": 0},
		"/strategy":                         {"strategy": "Rolling"},
		"/metrics":                          {"metrics": "yes"},
		"/env/CADASTRE_CONSOLE":             {"env": values{"CADASTRE_CONSOLE": true}},
		"invalid propertyName 'CADASTRE_L":  {"env": values{"CADASTRE_LISTEN": ":80"}},
		"'replica' not allowed":             {"replica": 3},
		"'hosts' not allowed":               {"ingress": values{"hosts": "example.org"}},
		"replicas must be 1 with sqlite":    {"sqliteClaim": "cadastre"},
		"must be Recreate with sqliteClaim": {"sqliteClaim": "cadastre", "replicas": 1, "strategy": "RollingUpdate"},
	} {
		if _, err := render(with); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", with, err, want)
		}
	}
}
