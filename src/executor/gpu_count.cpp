#include "executor/gpu_count.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/text.h"

namespace krigtune::executor {

Codec<std::string> gpus_codec() {
  const Json shape = schema::either({from_to(1, 1e6).applied_to(schema::integer()), schema::text()});
  return {shape,
          [](JsonObject& object, const std::string& key) {
            const Json& json = object.require(key);
            if (json.is_number_integer() && json.get<double>() >= 1.0) return json.dump();
            if (json.is_string() && !json.get<std::string>().empty()) return json.get<std::string>();
            object.fail(key, "\"auto\", a number of GPUs, or an expression over parameters was expected",
                        R"(write "auto", 4 or "tensor_parallel * pipeline_parallel")");
          },
          [](const std::string& text) { return Json(text); }};
}
namespace {

constexpr double kMostGpus = 1e6;

void refuse_unknown(const space::Expression& expression, const trial::KnownNames& known) {
  std::vector<std::string> names;
  for (const trial::KnownName& name : known) {
    if (!trial::is_name_of_trial(name.name)) names.push_back(name.name);
  }
  for (const std::string& name : expression.names()) {
    if (is_one_of(name, names)) continue;
    throw UserError(fmt::format("'{}' is neither a parameter nor a fact of the job", name), suggestion(name, names));
  }
}

}  // namespace

GpuCount::GpuCount(const std::string& text, const space::Space& space)
    : names_(space), expression_(space::Expression::parse_value(text)) {
  refuse_unknown(expression_, names_.known());
}

std::int64_t GpuCount::of(const space::Configuration& configuration) const {
  const trial::NamedValues values = names_.values(configuration, {});
  const std::optional<space::Value> value = expression_.value(trial::lookup_in(values));
  const double count = value && space::is_number(*value) ? space::as_number(*value) : 0.0;
  if (count >= 1.0 && count <= kMostGpus && count == std::floor(count)) return static_cast<std::int64_t>(count);
  throw UserError(fmt::format("'{}' is not a possible number of GPUs for {}", expression_.text(), configuration.text()),
                  "it must be a whole number of 1 or more in every configuration");
}

std::int64_t GpuCount::least(const space::Space& space) const {
  std::vector<space::Configuration> configurations(1);
  constexpr std::size_t kMostTried = 4096;
  for (const std::string& name : expression_.names()) {
    const space::Parameter* parameter = space.find(name);
    if (parameter == nullptr || parameter->continuous()) continue;
    std::vector<space::Configuration> longer;
    for (const space::Configuration& configuration : configurations) {
      for (const space::Value& value : parameter->values) {
        longer.push_back(configuration);
        longer.back().set(name, value);
      }
    }
    if (longer.size() > kMostTried) return 1;
    configurations = std::move(longer);
  }
  std::int64_t least = of(configurations.front());
  for (const space::Configuration& configuration : configurations) least = std::min(least, of(configuration));
  return least;
}

}  // namespace krigtune::executor
