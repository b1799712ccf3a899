#pragma once
#include <string>
#include <vector>

#include "krigtune/core/json.h"

/// The words from which JSON Schemas (draft-07) are put together. Blocks with named keys make theirs themselves
/// (core/block.h); these are for what is no such block, and for the kinds of values in one.
namespace krigtune::schema {

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
