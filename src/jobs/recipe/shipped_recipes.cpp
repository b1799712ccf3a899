#include "jobs/recipe/shipped_recipes.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/files.h"
#include "core/text.h"
#include "jobs/recipe/recipe.h"

namespace krigtune::jobs {
namespace {

// Returns the shipped recipe that a key names, completed.
Json shipped_base(const Json& json, const std::string& source, const std::string& key) {
  JsonObject object(json, source, "");
  const std::string name = object.text(key, "");
  const ShippedText* base = find_shipped_text(name);
  if (base == nullptr)
    object.fail(key, fmt::format("'{}' is not a shipped recipe", name), suggestion(name, shipped_names()));
  return completed_recipe(parse_json(base->text, base->source), base->source);
}

// Metrics and sizes are merged one by one; everything else is replaced.
Json with_base(const Json& json, Json whole) {
  for (const auto& [key, value] : json.items()) {
    const bool is_merged = key == "measure" || key == "model" || key == "training";
    if (is_merged && value.is_object() && whole.contains(key)) {
      whole[key].update(value);
    } else {
      whole[key] = value;
    }
  }
  whole.erase("like");
  return whole;
}

// What the recipe says of its training counts more. A value of another kind is reported when the recipe is read.
void add_caveats(Json& whole, const Json& other) {
  for (const char* key : {"not_modelled", "ignored"}) {
    if (!other.contains(key)) continue;
    if (!whole.contains(key)) whole[key] = Json::array();
    if (!whole[key].is_array()) continue;
    for (const Json& one : other[key]) whole[key].push_back(one);
  }
  if (other.contains("training")) {
    Json training = other["training"];
    const Json own = whole.value("training", Json::object());
    if (own.is_object()) training.update(own);
    whole["training"] = own.is_object() ? training : own;
  }
  whole.erase("caveats_of");
}

void drop_modelled(Json& whole, const std::string& source) {
  JsonObject object(whole, source, "");
  const std::vector<std::string> modelled = object.texts("modelled");
  Json kept = Json::array();
  for (const Json& gap : whole.value("not_modelled", Json::array())) {
    if (!gap.is_object() || !is_one_of(gap.value("what", ""), modelled)) kept.push_back(gap);
  }
  whole["not_modelled"] = kept;
  whole.erase("modelled");
}

}  // namespace

const ShippedText* find_shipped_text(std::string_view name) {
  const auto& texts = shipped_texts();
  const auto found =
      std::find_if(texts.begin(), texts.end(), [&](const ShippedText& text) { return text.name == name; });
  return found == texts.end() ? nullptr : &*found;
}

std::vector<std::string> shipped_names() {
  std::vector<std::string> names;
  for (const ShippedText& text : shipped_texts()) names.push_back(text.name);
  return names;
}

Json completed_recipe(const Json& json, const std::string& source) {
  if (!json.is_object()) return json;
  Json whole = json.contains("like") ? with_base(json, shipped_base(json, source, "like")) : json;
  if (whole.contains("caveats_of")) add_caveats(whole, shipped_base(whole, source, "caveats_of"));
  if (whole.contains("modelled")) drop_modelled(whole, source);
  return whole;
}

const std::vector<Recipe>& shipped_recipes() {
  static const std::vector<Recipe> kRecipes = [] {
    std::vector<Recipe> recipes;
    for (const ShippedText& shipped : shipped_texts()) {
      recipes.push_back(read_recipe(parse_json(shipped.text, shipped.source), shipped.source));
    }
    return recipes;
  }();
  return kRecipes;
}

Recipe find_recipe(const std::string& name_or_path) {
  for (const Recipe& recipe : shipped_recipes()) {
    if (recipe.name == name_or_path) return recipe;
  }
  const std::filesystem::path path = name_or_path;
  if (name_or_path.find('/') != std::string::npos || path.extension() == ".json") {
    return read_recipe(load_json(path), name_or_path);
  }
  throw UserError(fmt::format("there is no recipe '{}'", name_or_path),
                  suggestion(name_or_path, shipped_names()) + "; a recipe of your own is named by its path");
}

}  // namespace krigtune::jobs
