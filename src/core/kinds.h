#pragma once
#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/block.h"
#include "core/error.h"
#include "core/text.h"

/// A block of a JSON file that comes in several kinds, {"kind": NAME, ...}. It is read into a std::variant of settings
/// with one alternative for each kind. Each alternative has a `static entry()`: `traits.name` is the name of the kind,
/// and `block(base_dir)` is the Block of its other keys. If "kind" is left out, the first alternative is used. Only the
/// .cpp that owns the variant includes this header.
namespace krigtune {

inline constexpr std::string_view kVowels[] = {"a", "e", "i", "o", "u"};

/// The words for such a block in messages and in the schema.
struct KindWords {
  const char* noun;     ///< "runner", as in "'x' is not a runner"
  const char* meaning;  ///< the meaning of the whole block
  const char* kind;     ///< the meaning of the key "kind": "who runs it"
};

template <class Variant>
class Kinds {
 public:
  explicit Kinds(const KindWords& words) : words_(words) {}

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for_each([&]<class Spec>(const Spec&) { names.emplace_back(Spec::entry().traits.name); });
    return names;
  }

  /// Returns the default settings of the kind with that name, or nothing if there is no such kind.
  std::optional<Variant> defaults_of(const std::string& name) const {
    std::optional<Variant> defaults;
    for_each([&]<class Spec>(Spec spec) {
      if (name == Spec::entry().traits.name) defaults = std::move(spec);
    });
    return defaults;
  }

  /// Reads the block. Throws UserError with the JSON pointer. Relative paths in it are relative to `base_dir`.
  Variant read(const Json& json, const std::string& source, const std::string& pointer,
               const std::filesystem::path& base_dir) const {
    JsonObject object(json, source, pointer);
    const std::string kind = object.text("kind", names().front());
    std::optional<Variant> read;
    for_each([&]<class Spec>(Spec spec) {
      const auto entry = Spec::entry();
      if (kind != entry.traits.name) return;
      entry.block(base_dir).read(object, spec);
      read = std::move(spec);
    });
    if (!read)
      object.fail("kind",
                  fmt::format("'{}' is not a{} {}", kind, is_one_of(std::string(1, *words_.noun), kVowels) ? "n" : "",
                              words_.noun),
                  suggestion(kind, names()));
    return *read;
  }

  Json written(const Variant& spec) const {
    return std::visit(
        []<class Spec>(const Spec& settings) {
          const auto entry = Spec::entry();
          Json json = {{"kind", entry.traits.name}};
          entry.block({}).write(settings, json);
          return json;
        },
        spec);
  }

  /// Returns a schema with one object for each kind.
  Json schema() const {
    const std::vector<std::string> known = names();
    Json kind = schema::with_default(schema::word(known, "the kind"), known.front());
    kind["enum"].push_back(nullptr);
    Json schema = {{"description", words_.meaning},
                   {"type", "object"},
                   {"properties", {{"kind", kind}}},
                   {"allOf", Json::array()}};
    for_each([&]<class Spec>(const Spec&) { schema["allOf"].push_back(shape_of<Spec>(known)); });
    return schema;
  }

 private:
  template <class Visit, std::size_t... indices>
  static void for_each_default(const Visit& visit, std::index_sequence<indices...>) {
    (visit(std::variant_alternative_t<indices, Variant>{}), ...);
  }
  template <class Visit>
  static void for_each(const Visit& visit) {
    for_each_default(visit, std::make_index_sequence<std::variant_size_v<Variant>>());
  }

  Json kind_is(const char* name) const { return {{"description", words_.kind}, {"const", name}}; }

  template <class Spec>
  Json shape_of(const std::vector<std::string>& known) const {
    constexpr bool kIsDefault = std::is_same_v<Spec, std::variant_alternative_t<0, Variant>>;
    const auto entry = Spec::entry();
    const char* name = entry.traits.name;
    Json block = entry.block({}).schema();
    Json keys = Json::object();
    keys["kind"] =
        kIsDefault ? schema::word({name}, fmt::format("{}: {}", words_.kind, join(known, ", "))) : kind_is(name);
    if (kIsDefault) keys["kind"]["enum"].push_back(nullptr);
    keys.update(block["properties"]);
    block["properties"] = std::move(keys);
    Json condition = {{"properties", {{"kind", kind_is(name)}}}, {"required", {"kind"}}};
    if (kIsDefault) {
      condition = {{"properties", {{"kind", {{"enum", {name, nullptr}}}}}}};
    } else {
      Json required = {"kind"};
      for (const Json& key : block.value("required", Json::array())) required.push_back(key);
      block["required"] = required;
    }
    return {{"if", condition}, {"then", block}};
  }

  KindWords words_;
};

}  // namespace krigtune
