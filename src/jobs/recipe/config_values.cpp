// Reads YAML with yaml-cpp, TOML with toml++ and JSON with nlohmann, and flattens them to scalars by dotted key.
#include "jobs/recipe/config_values.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <sstream>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "core/text.h"
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace krigtune::jobs {
namespace {

// Aliases can make a small YAML file endless.
constexpr std::size_t kMostValues = 100'000;
constexpr int kMostDepth = 100;

class Flattening {
 public:
  explicit Flattening(const std::string& source) : source_(source) {}

  void add(const std::string& key, const YAML::Node& node, int depth = 0) {
    check_size(depth);
    if (node.IsMap()) {
      for (const auto& entry : node) add(below(key, entry.first.as<std::string>("")), entry.second, depth + 1);
    } else if (node.IsSequence()) {
      for (std::size_t i = 0; i < node.size(); ++i) add(below(key, std::to_string(i)), node[i], depth + 1);
    } else if (node.IsScalar()) {
      const bool is_quoted = node.Tag() == "!";
      values_[key] = is_quoted ? space::Value(node.Scalar()) : space::value_from_text(node.Scalar());
    }
  }

  void add(const std::string& key, const Json& json, int depth = 0) {
    check_size(depth);
    if (json.is_object()) {
      for (const auto& [name, value] : json.items()) add(below(key, name), value, depth + 1);
    } else if (json.is_array()) {
      for (std::size_t i = 0; i < json.size(); ++i) add(below(key, std::to_string(i)), json[i], depth + 1);
    } else if (!json.is_null()) {
      values_[key] = space::value_from_json(json, source_ + ": " + key);
    }
  }

  void add(const std::string& key, const toml::node& node, int depth = 0) {
    check_size(depth);
    if (const auto* table = node.as_table()) {
      for (const auto& [name, value] : *table) add(below(key, std::string(name.str())), value, depth + 1);
    } else if (const auto* array = node.as_array()) {
      for (std::size_t i = 0; i < array->size(); ++i) add(below(key, std::to_string(i)), (*array)[i], depth + 1);
    } else if (const auto text = node.value_exact<std::string>()) {
      values_[key] = *text;
    } else if (const auto flag = node.value_exact<bool>()) {
      values_[key] = *flag;
    } else if (const auto whole = node.value_exact<std::int64_t>()) {
      values_[key] = *whole;
    } else if (const auto number = node.value<double>()) {
      values_[key] = space::number_value(*number);
    }
  }

  ConfigValues take() { return std::move(values_); }

 private:
  static std::string below(const std::string& key, const std::string& name) {
    return key.empty() ? name : key + "." + name;
  }

  void check_size(int depth) const {
    if (values_.size() < kMostValues && depth < kMostDepth) return;
    throw UserError(fmt::format("{}: it has too many values", source_), "name the job's configuration");
  }

  const std::string& source_;
  ConfigValues values_;
};

}  // namespace

ConfigValues config_values_of(std::string_view text, std::string_view suffix, const std::string& source) {
  Flattening flattening(source);
  if (suffix == ".json") {
    flattening.add("", parse_json(text, source));
    return flattening.take();
  }
  try {
    if (suffix == ".toml") {
      flattening.add("", static_cast<const toml::node&>(toml::parse(text, source)));
    } else {
      flattening.add("", YAML::Load(std::string(text)));
    }
  } catch (const YAML::Exception& error) {
    const int line = error.mark.is_null() ? 1 : error.mark.line + 1;
    throw UserError(fmt::format("{}:{}: invalid YAML: {}", source, line, error.msg), "fix that line");
  } catch (const toml::parse_error& error) {
    throw UserError(fmt::format("{}:{}: invalid TOML: {}", source, error.source().begin.line, error.description()),
                    "fix that line");
  }
  return flattening.take();
}

ConfigValues read_config_values(const std::filesystem::path& file) {
  return config_values_of(read_text(file), lower_case(file.extension().string()), file.string());
}

}  // namespace krigtune::jobs
