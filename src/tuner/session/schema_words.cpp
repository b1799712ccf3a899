#include "session/schema_words.h"

namespace krigtune::schema {
namespace {

Json of_type(const char* type, const std::string& meaning) {
  Json schema = Json::object();
  if (!meaning.empty()) schema["description"] = meaning;
  schema["type"] = type;
  return schema;
}

Json with(Json schema, const char* key, const Json& value) {
  schema[key] = value;
  return schema;
}

Json or_null(Json schema) {
  if (schema.contains("enum")) {
    schema["enum"].push_back(nullptr);
  } else if (schema.contains("anyOf")) {
    schema["anyOf"].push_back({{"type", "null"}});
  } else if (schema.contains("type") && schema["type"] != "null") {
    schema["type"] = Json::array({schema["type"], "null"});
  }
  return schema;
}

}  // namespace

Json text(const std::string& meaning) { return of_type("string", meaning); }
Json number(const std::string& meaning) { return of_type("number", meaning); }
Json integer(const std::string& meaning) { return of_type("integer", meaning); }
Json boolean(const std::string& meaning) { return of_type("boolean", meaning); }

Json word(const std::string& meaning, const std::vector<std::string>& names) {
  return {{"description", meaning}, {"enum", names}};
}

Json list(const std::string& meaning, const Json& item) { return with(of_type("array", meaning), "items", item); }

Json map(const std::string& meaning, const Json& value) {
  return with(of_type("object", meaning), "additionalProperties", value);
}

Json either(const std::string& meaning, const std::vector<Json>& shapes) {
  return {{"description", meaning}, {"anyOf", Json(shapes)}};
}

Json with_default(Json schema, const Json& value) { return with(std::move(schema), "default", value); }
Json at_least(Json schema, const Json& smallest) { return with(std::move(schema), "minimum", smallest); }
Json above(Json schema, const Json& bound) { return with(std::move(schema), "exclusiveMinimum", bound); }
Json below(Json schema, const Json& bound) { return with(std::move(schema), "exclusiveMaximum", bound); }
Json at_most(Json schema, const Json& largest) { return with(std::move(schema), "maximum", largest); }

Json not_empty(Json schema) {
  const char* key = schema["type"] == "array" ? "minItems" : "minLength";
  return with(std::move(schema), key, 1);
}

Json block(const std::string& meaning, const std::vector<Key>& keys) {
  Json schema = of_type("object", meaning);
  schema["additionalProperties"] = false;
  Json required = Json::array();
  schema["properties"] = Json::object();
  for (const Key& key : keys) {
    schema["properties"][key.name] = key.required ? key.schema : or_null(key.schema);
    if (key.required) required.push_back(key.name);
  }
  if (!required.empty()) schema["required"] = required;
  return schema;
}

}  // namespace krigtune::schema
