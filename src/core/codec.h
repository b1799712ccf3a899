#pragma once
#include <array>
#include <cassert>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/json.h"

namespace krigtune::schema {

/// The words from which JSON Schemas (draft-07) are put together. Blocks with named keys make theirs themselves
/// (core/block.h); these are for what is no such block, and for the kinds of values in one.

Json text(const std::string& meaning = "");
Json number(const std::string& meaning = "");
Json integer(const std::string& meaning = "");
Json boolean(const std::string& meaning = "");
Json word(const std::vector<std::string>& names, const std::string& meaning = "");
Json list(const Json& item, const std::string& meaning = "");
Json map(const Json& value, const std::string& meaning = "");  ///< any key
/// Any of several shapes.
Json either(const std::vector<Json>& shapes, const std::string& meaning = "");
/// A value as parameters have them: a number, a text, true or false.
Json scalar();

Json with_meaning(const std::string& meaning, Json schema);  ///< the meaning comes first
Json with_default(Json schema, const Json& value);
Json not_empty(Json schema);  ///< a list or a text

struct Key {
  std::string name;
  Json schema;
  bool required = false;
};
/// An object with these keys and no others. Readers take null for a key that is left out; so does this.
Json object(const std::string& meaning, const std::vector<Key>& keys);

}  // namespace krigtune::schema

namespace krigtune {

/// The words of an enum as they stand in a session.
template <class Enum, std::size_t N>
using EnumWords = std::array<std::pair<std::string_view, Enum>, N>;

template <class Enum, std::size_t N>
std::string word_of(Enum value, const EnumWords<Enum, N>& words) {
  for (const auto& [word, other] : words) {
    if (other == value) return std::string(word);
  }
  assert(false);
  return "";
}

/// How one value stands in a JSON file: what reads it, what writes it, and its JSON Schema (core/block.h puts them
/// together to objects).
///
///   number(from_to(0, 2))      integer<int>(at_least(1))      one_of(kLauncherWords)

/// Which numbers a key takes.
struct NumberLimits {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_included = true;
  bool high_included = true;

  bool hold(double value) const;
  std::string text() const;  ///< "from 0 to 2", "above 0", "of 0 or more"; "": any number
  nlohmann::ordered_json applied_to(nlohmann::ordered_json schema) const;
};
NumberLimits at_least(double low);
NumberLimits above(double low);
NumberLimits from_to(double low, double high);
NumberLimits from_to_below(double low, double high);  ///< [low, high)
NumberLimits above_up_to(double low, double high);    ///< (low, high]

/// One kind of value. `read` is called where the key is there and not null, and throws UserError with its pointer.
template <class Member>
struct Codec {
  Json schema;
  std::function<Member(JsonObject& object, const std::string& key)> read;
  std::function<Json(const Member& value)> write;
};

/// `example` of what to write instead: "0.01 for 1 %".
Codec<double> number(const NumberLimits& limits = {}, const std::string& example = "");
/// Of a member that is optional: the same, with null in the fix.
Codec<double> number_or_null(const NumberLimits& limits);
Codec<bool> boolean();
Codec<std::string> text();
Codec<std::string> text_or_null();  ///< "" means not said, and is written as null
Codec<std::vector<std::string>> texts();

namespace detail {
/// The integer at `key`, within the limits.
std::int64_t limited_integer(JsonObject& object, const std::string& key, const NumberLimits& limits,
                             const std::string& or_else);
[[noreturn]] void refuse_word(const JsonObject& object, const std::string& key, const std::string& word,
                              const std::vector<std::string>& known);
}  // namespace detail

template <class Integer = std::int64_t>
Codec<Integer> integer(const NumberLimits& limits = {}, const std::string& or_else = "") {
  return {limits.applied_to(schema::integer()),
          [limits, or_else](JsonObject& object, const std::string& key) {
            return static_cast<Integer>(detail::limited_integer(object, key, limits, or_else));
          },
          [](const Integer& value) { return Json(value); }};
}
/// Of a member that is optional: the same, with null in the fix.
template <class Integer = std::int64_t>
Codec<Integer> integer_or_null(const NumberLimits& limits) {
  return integer<Integer>(limits, " or null");
}

/// The enumerators of `words`.
template <class Enum, std::size_t N>
Codec<Enum> one_of(const EnumWords<Enum, N>& words) {
  std::vector<std::string> known;
  for (const auto& entry : words) known.emplace_back(entry.first);
  return {schema::word(known),
          [words, known](JsonObject& object, const std::string& key) {
            const std::string text = object.text(key, "");
            for (const auto& [word, value] : words) {
              if (word == text) return value;
            }
            detail::refuse_word(object, key, text, known);
          },
          [words](const Enum& value) { return Json(word_of(value, words)); }};
}

}  // namespace krigtune
