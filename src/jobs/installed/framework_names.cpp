#include "jobs/installed/framework_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "core/error.h"
#include "core/text.h"
#include "jobs/installed/ask_python.h"
#include "jobs/installed/python_programs.h"

namespace krigtune::jobs {
namespace {

using Texts = std::vector<std::string>;
using Spellings = std::vector<Texts>;
using TextPairs = std::vector<std::pair<std::string, std::string>>;

constexpr std::array<std::string_view, 6> kKinds = {"argparse", "source", "fields", "values", "yaml", "hydra"};

TextPairs read_text_map(JsonObject& object, const std::string& key) {
  TextPairs pairs;
  if (object.find(key) == nullptr) return pairs;
  JsonObject within = object.object(key);
  for (const auto& [name, json] : within.value().items()) pairs.emplace_back(name, within.text(name, ""));
  return pairs;
}

Block<NameSource> source_block() {
  Block<NameSource> block("An object of the framework that lists its flags or keys");
  block
      .key("kind", &NameSource::kind, text(),
           "argparse (a parser, or a function that makes one), source (programs, whose add_argument and cfg.key are "
           "read), fields (a "
           "class), values (an object, or a function that makes one), yaml (files) or hydra (a configuration)")
      .required();
  block.key("module", &NameSource::module, text(), "the Python module").required();
  block.key("object", &NameSource::object, text(), "its object; of source, yaml and hydra a path below its folder")
      .required();
  block.key("without", &NameSource::without, texts(), "names and groups of names that no command can state");
  block.key("of_launcher", &NameSource::of_launcher, boolean(), "they are the launcher's: not all need be known");
  block.check([](JsonObject& object, const NameSource& source) {
    if (!is_one_of(source.kind, kKinds))
      object.fail("kind", fmt::format("'{}' is unknown", source.kind),
                  suggestion(source.kind, Texts(kKinds.begin(), kKinds.end())));
  });
  return block;
}

Json request_of(const InstalledFramework& framework) {
  Json request = {{"packages", Json::array()}, {"sources", Json::array()}};
  for (const auto& [package, version] : framework.packages) request["packages"].push_back(package);
  for (const NameSource& source : framework.sources) request["sources"].push_back(source_block().written(source));
  return request;
}

bool is_within(const std::string& name, const std::string& group) {
  return name == group || name.starts_with(group + ".");
}

// Adds spellings that are not there yet.
void add_names(const Spellings& added, const Texts& without, Spellings& names) {
  for (const Texts& spellings : added) {
    if (spellings.empty()) continue;
    const bool is_left_out = std::any_of(without.begin(), without.end(),
                                         [&](const auto& group) { return is_within(spellings.front(), group); });
    if (!is_left_out && std::find(names.begin(), names.end(), spellings) == names.end()) names.push_back(spellings);
  }
}

Spellings read_spellings(JsonObject& object, const std::string& key) {
  Spellings names;
  const Json* json = object.find(key);
  if (json == nullptr) return names;
  if (!json->is_array()) object.fail(key, "must be a list", "");
  for (const Json& one : *json) {
    const Json holder = {{"names", one}};
    names.push_back(JsonObject(holder, object.source(), object.pointer(key)).texts("names"));
  }
  return names;
}

void add_source(JsonObject& answer, const NameSource& source, FrameworkNames& names) {
  const std::string trouble = answer.text("trouble", "");
  const std::string object = source.object.empty() ? "" : " " + source.object;
  if (!trouble.empty())
    names.troubles.push_back(fmt::format("{}{}: {}", source.module, object, trouble.substr(0, trouble.find('\n'))));
  add_names(read_spellings(answer, "names"), source.without, source.of_launcher ? names.launcher_names : names.names);
  for (const std::string& key : answer.texts("open")) {
    if (!is_one_of(key, names.open)) names.open.push_back(key);
  }
}

FrameworkNames read_answer(const Json& json, const InstalledFramework& framework, const std::string& source) {
  JsonObject object(json, source, "");
  FrameworkNames names;
  names.packages = read_text_map(object, "packages");
  if (names.packages.empty()) return names;
  const Json& answers = object.require("sources");
  if (!answers.is_array() || answers.size() != framework.sources.size())
    object.fail("sources", "must be a list with what each source said", "");
  for (std::size_t i = 0; i < answers.size(); ++i) {
    JsonObject answer(answers[i], source, fmt::format("/sources/{}", i));
    add_source(answer, framework.sources[i], names);
  }
  return names;
}

}  // namespace

Block<InstalledFramework> installed_block() {
  Block<InstalledFramework> block("What of an installed framework lists its flags and keys, for recipes --check");
  block.custom(
      "packages", schema::map(schema::text()),
      "its distributions, with the version that this recipe was last compared with",
      [](JsonObject& object, InstalledFramework& value) { value.packages = read_text_map(object, "packages"); });
  block.custom("sources", schema::list(source_block().schema()), "what of it lists flags or keys",
               [](JsonObject& object, InstalledFramework& value) {
                 const Json* json = object.find("sources");
                 if (json == nullptr) return;
                 if (!json->is_array()) object.fail("sources", "must be a list", "write [...]");
                 for (std::size_t i = 0; i < json->size(); ++i) {
                   const std::string pointer = fmt::format("{}/{}", object.pointer("sources"), i);
                   value.sources.push_back(source_block().value_of(&(*json)[i], object.source(), pointer));
                 }
               });
  block.custom(
      "elsewhere", schema::map(schema::text()), "names of this recipe that are not there, and whose they are",
      [](JsonObject& object, InstalledFramework& value) { value.elsewhere = read_text_map(object, "elsewhere"); });
  block.key("ran", &InstalledFramework::ran, text(), "what of it was run by krigtune");
  return block;
}

FrameworkNames ask_framework(const InstalledFramework& framework, const std::string& python, double timeout_s,
                             const Clock& clock) {
  const Json answer = ask_python({"--check", python, kAskFramework, request_of(framework), timeout_s}, clock);
  return read_answer(answer, framework, fmt::format("--check: the answer of '{}'", python));
}

Json to_json(const FrameworkNames& names) {
  Json json = {{"packages", Json::object()}};
  for (const auto& [package, version] : names.packages) json["packages"][package] = version;
  json["names"] = names.names;
  json["launcher_names"] = names.launcher_names;
  json["open"] = names.open;
  json["troubles"] = names.troubles;
  return json;
}

FrameworkNames framework_names_from(const Json& json, const std::string& source) {
  JsonObject object(json, source, "");
  FrameworkNames names;
  names.packages = read_text_map(object, "packages");
  names.names = read_spellings(object, "names");
  names.launcher_names = read_spellings(object, "launcher_names");
  names.open = object.texts("open");
  names.troubles = object.texts("troubles");
  return names;
}

}  // namespace krigtune::jobs
