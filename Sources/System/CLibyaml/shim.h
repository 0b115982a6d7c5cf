// libyaml: the events of a YAML document.
#pragma once
#include <yaml.h>
