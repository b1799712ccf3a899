#include "jobs/recipe/recipe_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "core/text.h"

namespace krigtune::jobs {
namespace {

using Texts = std::vector<std::string>;

std::string code(const std::string& text) { return fmt::format("`{}`", text); }

// Escapes bars, which would end a table cell.
std::string cell(const std::string& text) {
  std::string escaped;
  for (const char c : text) escaped.append(c == '|' ? "\\|" : std::string(1, c));
  return escaped;
}

Texts codes(const Texts& texts) {
  Texts quoted;
  for (const std::string& text : texts) quoted.push_back(code(text));
  return quoted;
}

// Returns, for example, "with `--fsdp` and without `--use_cpu`".
std::string conditions_of(const CommandPattern& pattern) {
  Texts parts;
  const auto add = [&](const char* before, const Texts& texts, const char* between) {
    if (!texts.empty()) parts.push_back(before + join(codes(texts), between));
  };
  add("launcher ", pattern.launchers, " or ");
  add("script ", pattern.scripts, " or ");
  add("module ", pattern.modules, " or ");
  add("program ", pattern.programs, " or ");
  add("with ", pattern.flags, " and ");
  add("with ", pattern.any_flag, " or ");
  add("with bare ", pattern.bare, " and ");
  add("without ", pattern.without, " and ");
  add("keys ", pattern.keys, " and ");
  add("without keys ", pattern.without_keys, " and ");
  return join(parts, ", ");
}

// Returns, for example, "`0`: nothing, `1`: `--use-distributed-optimizer`".
std::string words_text(const Place& place) {
  Texts parts;
  for (const auto& [value, words] : place.words) {
    parts.push_back(
        fmt::format("{}: {}", space::to_string(value), words.empty() ? "nothing" : code(shell_line(words))));
  }
  return join(parts, "; ");
}

// Returns what a place writes for values that it calls otherwise: "zb-h1 is `InterleavedZeroBubble`".
Texts other_words(const Place& place) {
  Texts parts;
  for (const auto& [value, text] : place.values) {
    if (space::to_string(value) != text) parts.push_back(fmt::format("{} is {}", space::to_string(value), code(text)));
  }
  return parts;
}

/// More values than this are a list of their own, where there is room for one.
constexpr std::size_t kMostValuesInline = 4;

bool has_many_values(const Place& place) { return other_words(place).size() > kMostValuesInline; }

// `lists_values`: many values are listed elsewhere.
std::string values_text(const Place& place, bool lists_values) {
  const Texts parts = other_words(place);
  if (parts.empty() || (lists_values && has_many_values(place))) return "";
  return " (" + join(parts, ", ") + ")";
}

// Returns where a place is read, in this order.
Texts ways_of(const Place& place, const Recipe& recipe, bool lists_values) {
  const std::string values = values_text(place, lists_values);
  Texts ways;
  if (place.is_operand) ways.push_back("first word without a flag" + values);
  if (!place.flags.empty()) {
    ways.push_back((place.of_launcher ? "launcher's " : "") + join(codes(place.flags), " or ") + values);
  }
  if (!place.quotient_flags.empty())
    ways.push_back(fmt::format("{} divided by {}", place.quotient_of, join(codes(place.quotient_flags), " or ")));
  if (!place.override_key.empty()) ways.push_back(code(recipe.override_prefix + place.override_key + "=...") + values);
  if (!place.tail.empty()) ways.push_back("last word " + code(place.tail + "..."));
  if (!place.words.empty()) ways.push_back(words_text(place));
  if (!place.env.empty()) ways.push_back("variable " + code(place.env));
  if (!place.key.empty()) {
    const bool is_first = place.file.empty() || place.file == recipe.files.front().name;
    const std::string of = is_first ? "" : fmt::format(" of the file {}", place.file);
    ways.push_back("key " + code(place.key) + of + (ways.empty() ? values : ""));
  }
  return ways;
}

// Returns how the value is found, whatever the conditions.
std::string value_text(const Place& place, const Recipe& recipe, bool lists_values) {
  std::string text = join(ways_of(place, recipe, lists_values), ", else ");
  if (place.times != 1.0) text += fmt::format(", times {}", number_text(place.times));
  if (place.rounded_up > 0) text += fmt::format(", rounded up to a multiple of {}", place.rounded_up);
  if (place.rounded_down > 0) text += fmt::format(", rounded down to a multiple of {}", place.rounded_down);
  if (!place.copy_flags.empty()) text += fmt::format(", and {} where it is there", join(codes(place.copy_flags), ", "));
  if (!place.copy_keys.empty()) {
    text += fmt::format(", and the key {} where it is there", join(codes(place.copy_keys), ", "));
  }
  if (!place.times_of.empty()) text += ", times " + place.times_of;
  if (place.is_shared) text += ", divided by the number of ranks";
  if (place.is_groups) text += ", which is the number of groups of so many data-parallel ranks";
  for (const Texts* sizes : {&place.size_flags, &place.size_keys}) {
    if (!sizes->empty()) text += fmt::format(", and their size to {} where it is there", join(codes(*sizes), ", "));
  }
  if (place.is_of_node) text += (text.empty() ? "" : ", else ") + std::string("the ranks of a node");
  if (place.otherwise) {
    const char* const before = !text.empty() ? ", else " : place.assumed.empty() ? "always " : "";
    text += before + space::to_string(*place.otherwise);
  }
  if (!place.assumed.empty()) text += fmt::format(" (assumed: {})", place.assumed);
  if (place.is_read_only) text += text.empty() ? "not read" : ", not changed";
  return text;
}

std::string place_text(const Place& place, const Recipe& recipe) {
  const std::string conditions = conditions_of(place.where);
  return (conditions.empty() ? "" : conditions + ": ") + value_text(place, recipe, false);
}

std::string places_text(const RecipeValue& value, const Recipe& recipe) {
  Texts texts;
  for (const Place& place : value.places) texts.push_back(place_text(place, recipe));
  return join(texts, "<br>");
}

// Cells of a table are short. Places that take more room than this have a list below the table.
constexpr std::size_t kLongestCell = 280;

bool needs_list(const RecipeValue& value, const Recipe& recipe) {
  const bool has_parts = value.places.size() > 1 || std::ranges::any_of(value.places, has_many_values);
  return has_parts && places_text(value, recipe).size() > kLongestCell;
}

std::string places_cell(const RecipeValue& value, const std::string& heading, const Recipe& recipe) {
  return needs_list(value, recipe) ? fmt::format("listed [below](#{})", heading) : places_text(value, recipe);
}

// Returns the values of places[at], one a line, or which place has the same ones.
std::string listed_values(const std::vector<Place>& places, std::size_t at, const std::vector<std::size_t>& numbers) {
  if (!has_many_values(places[at])) return "";
  const Texts values = other_words(places[at]);
  std::string text;
  for (std::size_t i = 0; i < at; ++i) {
    if (other_words(places[i]) == values) return fmt::format("   - its values are those of place {}\n", numbers[i]);
  }
  for (const std::string& one : values) text += "   - " + one + "\n";
  return text;
}

// Returns "### heading" with one line for each place, and for each of its values where it has many. Places that follow
// each other and differ in their conditions alone share a line.
std::string places_list(const RecipeValue& value, const std::string& heading, const Recipe& recipe) {
  if (!needs_list(value, recipe)) return "";
  std::string text = fmt::format("\n### {}\n\nThe first of these places that applies:\n\n", heading);
  std::vector<std::size_t> numbers;
  std::size_t number = 0;
  for (std::size_t i = 0; i < value.places.size(); ++i) {
    const std::string what = value_text(value.places[i], recipe, true);
    Texts conditions = {conditions_of(value.places[i].where)};
    const std::size_t first = i;
    const Texts values = other_words(value.places[i]);
    numbers.push_back(++number);
    while (i + 1 < value.places.size() && !conditions.back().empty() && other_words(value.places[i + 1]) == values &&
           value_text(value.places[i + 1], recipe, true) == what && !value.places[i + 1].where.is_empty()) {
      conditions.push_back(conditions_of(value.places[++i].where));
      numbers.push_back(number);
    }
    const std::string all = join(conditions, "; or ");
    text += fmt::format("{}. {}{}\n", number, all.empty() ? "" : all + ": ", what);
    text += listed_values(value.places, first, numbers);
  }
  return text;
}

std::string range_text(const Json& vary) {
  if (vary.is_null()) return "on request";
  const Json& list = vary.is_object() && vary.contains("values") ? vary.at("values") : vary;
  if (!list.is_array()) return code(list.dump());
  Texts values;
  for (const Json& value : list) values.push_back(value.is_string() ? value.get<std::string>() : value.dump());
  return join(values, ", ");
}

std::string searched_text(const Recipe& recipe) {
  if (recipe.parameters.empty()) return "";
  std::string text = "\n## What is searched\n\n| parameter | where it is set | tried |\n|---|---|---|\n";
  std::string lists;
  for (const RecipeValue& value : recipe.parameters) {
    text +=
        fmt::format("| `{}` | {} | {} |\n", value.name, places_cell(value, value.name, recipe), range_text(value.vary));
    lists += places_list(value, value.name, recipe);
  }
  if (!recipe.train_batch_size.places.empty()) {
    text += fmt::format("| batch | {} | kept |\n", places_cell(recipe.train_batch_size, "batch", recipe));
    lists += places_list(recipe.train_batch_size, "batch", recipe);
  }
  if (!recipe.data_parallel.places.empty()) {
    text += fmt::format("| data-parallel ranks | {} | follow |\n", places_text(recipe.data_parallel, recipe));
  }
  text += "\nThe batch of a step stays: gradient accumulation follows from the micro-batch.\n";
  if (!recipe.fixed.empty()) text += fmt::format("\nAlways: {}.\n", code(recipe.fixed.text()));
  if (!recipe.constraints.empty()) {
    text += "\nWhat does not go together is not tried; `{name}` is the command's own value:\n\n";
    for (const std::string& constraint : recipe.constraints) text += "- " + code(constraint) + "\n";
  }
  return text + lists;
}

std::string trials_text(const Recipe& recipe) {
  std::string text;
  if (!recipe.remove.empty()) text += fmt::format("- without {}\n", join(codes(recipe.remove), ", "));
  for (const RecipeWords& one : recipe.add) {
    const std::string conditions = conditions_of(one.where);
    text += fmt::format("- with {}{}\n", code(join(one.words, " ")), conditions.empty() ? "" : " (" + conditions + ")");
  }
  for (const RecipeKey& key : recipe.set) {
    const std::string conditions = conditions_of(key.where);
    text += fmt::format("- with `{}: {}` in the file{}\n", key.key, key.value,
                        conditions.empty() ? "" : " (" + conditions + ")");
  }
  for (const auto* variables : {&recipe.env, &recipe.training_env}) {
    for (const RecipeVariable& variable : *variables) {
      const std::string conditions = conditions_of(variable.where);
      const bool trains = variables == &recipe.training_env;
      text += fmt::format("- with the variable `{}={}`{}{}\n", variable.name, variable.value,
                          trains ? ", and so does the command that trains" : "",
                          conditions.empty() ? "" : " (" + conditions + ")");
    }
  }
  if (text.empty()) return "";
  return "\n## What trials run\n\nYour command with other values, and:\n\n" + text;
}

std::string source_text(const Json& metric) {
  if (metric.contains("regex")) return code(metric.at("regex").get<std::string>());
  if (metric.contains("wall")) return "time between lines that match " + code(metric.at("wall").get<std::string>());
  Texts parts;
  for (const char* key : {"key", "column", "tag"}) {
    if (metric.contains(key)) parts.push_back(fmt::format("{} `{}`", key, metric.at(key).get<std::string>()));
  }
  if (metric.contains("from")) parts.push_back("in " + code(metric.at("from").get<std::string>()));
  return join(parts, " ");
}

std::string measured_text(const Recipe& recipe) {
  if (recipe.measure.empty()) return "";
  std::string text = "\n## What is measured\n\n| metric | read from | |\n|---|---|---|\n";
  for (const auto& [name, metric] : recipe.measure.items()) {
    Texts notes;
    if (metric.contains("times")) {
      const Json& times = metric.at("times");
      notes.push_back("times " +
                      (times.is_string() ? code(times.get<std::string>()) : number_text(times.get<double>())));
    }
    if (metric.contains("per")) notes.push_back("per " + metric.at("per").get<std::string>());
    if (metric.contains("kind")) notes.push_back(metric.at("kind").get<std::string>());
    text += fmt::format("| `{}` | {} | {} |\n", name, cell(source_text(metric)), join(notes, ", "));
  }
  text +=
      fmt::format("\nThe first {} steps are dropped, {} are measured.\n", recipe.warmup_steps, recipe.measure_steps);
  if (recipe.checks.empty()) return text;
  text += "\nA trial whose job prints something else than what was intended fails as `not_applied`:\n\n";
  for (const Json& check : recipe.checks) {
    text += fmt::format("- {}: {} must be {}\n", check.value("what", "it"), code(check.at("regex").get<std::string>()),
                        code(check.at("equals").get<std::string>()));
  }
  return text;
}

std::string model_text(const Recipe& recipe) {
  if (recipe.model.empty()) return "";
  std::string others;
  std::string last;
  for (const RecipeFramework& one : recipe.frameworks) {
    const bool is_same = one.framework == last;
    others += is_same ? "; or " : fmt::format(", and of {} (", code(one.framework));
    others += conditions_of(one.where);
    if (&one == &recipe.frameworks.back() || (&one + 1)->framework != one.framework) others += ")";
    last = one.framework;
  }
  std::string text = fmt::format(
      "\n## The model\n\nTime and memory are predicted with the models of `{}`{} where the command says the sizes:\n\n"
      "| size | where it is set |\n|---|---|\n",
      recipe.framework, others);
  std::string lists;
  for (const RecipeValue& value : recipe.model) {
    text += fmt::format("| `{}` | {} |\n", value.name, places_cell(value, value.name, recipe));
    lists += places_list(value, value.name, recipe);
  }
  return text + lists;
}

std::string outcome_text(const Recipe& recipe) {
  if (!recipe.instead.empty()) return "";
  const std::string files =
      recipe.files.empty() ? "" : ", and the files that it names, whole, if a value is in one of them";
  return fmt::format(
      "\n## What comes out\n\n`cmd_optimal.txt`: your command with the best values{}. It trains: nothing is removed "
      "from "
      "it. `changes.md` says what each change is worth.\n",
      files);
}

std::string built_in_text(const RecipeFile& file, const std::string& versions) {
  if (file.built_in.empty()) return "";
  return fmt::format(
      "\n{} of {} {} known by name, as `{}`: where there is no such file, their values are assumed, and the session "
      "lists "
      "them.\n",
      counted(static_cast<std::int64_t>(file.built_in.size()), "file"), versions,
      file.built_in.size() == 1 ? "is" : "are", file.built_in.front().first);
}

// Returns what the recipe was compared with.
std::string installed_text(const Recipe& recipe) {
  Texts packages;
  for (const auto& [name, version] : recipe.installed.packages) packages.push_back(name + " " + version);
  if (packages.empty()) return "";
  return fmt::format(" Its flags and keys were compared with those of {}: `krigtune recipes {} --check PYTHON`.",
                     join(packages, ", "), recipe.name);
}

}  // namespace

std::string recipe_page(const Recipe& recipe) {
  std::string text = fmt::format("# {}\n\n{}. Written for {}.{}\n", recipe.name, recipe.summary, recipe.versions,
                                 installed_text(recipe));
  if (!recipe.example.empty()) text += fmt::format("\n```\n{}\n```\n", recipe.example);
  text += "\nKnown by any of:\n\n";
  for (const CommandPattern& pattern : recipe.recognise) text += "- " + conditions_of(pattern) + "\n";
  if (recipe.is_last_resort) text += "\nIt is taken only where no other recipe knows the command.\n";
  for (const RecipeFile& file : recipe.files) text += built_in_text(file, recipe.versions);
  text +=
      searched_text(recipe) + trials_text(recipe) + measured_text(recipe) + model_text(recipe) + outcome_text(recipe);
  if (!recipe.notes.empty()) text += "\n## Worth knowing\n\n";
  for (const std::string& note : recipe.notes) text += "- " + note + "\n";
  return text;
}

}  // namespace krigtune::jobs
