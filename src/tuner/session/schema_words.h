#pragma once
#include <string>
#include <vector>

#include "krigtune/core/json.h"

// The words from which the session's JSON Schema is put together. Private to this layer.
namespace krigtune::schema {

Json text(const std::string& meaning);
Json number(const std::string& meaning);
Json integer(const std::string& meaning);
Json boolean(const std::string& meaning);
Json word(const std::string& meaning, const std::vector<std::string>& names);
Json list(const std::string& meaning, const Json& item);
Json map(const std::string& meaning, const Json& value);  ///< any key
/// Any of several shapes.
Json either(const std::string& meaning, const std::vector<Json>& shapes);

Json with_default(Json schema, const Json& value);
Json at_least(Json schema, const Json& smallest);
Json above(Json schema, const Json& bound);
Json below(Json schema, const Json& bound);
Json at_most(Json schema, const Json& largest);
Json not_empty(Json schema);  ///< a list or a text

struct Key {
  std::string name;
  Json schema;
  bool required = false;
};
/// An object with these keys and no others. The reader takes null for a key that is left out; so does this.
Json block(const std::string& meaning, const std::vector<Key>& keys);

}  // namespace krigtune::schema
