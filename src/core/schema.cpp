#include "krigtune/core/schema.h"

namespace krigtune::schema {
namespace {

Json of_type(const char* type, const std::string& meaning) { return with_meaning(meaning, Json{{"type", type}}); }

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

Json word(const std::vector<std::string>& names, const std::string& meaning) {
  return with_meaning(meaning, {{"enum", names}});
}

Json list(const Json& item, const std::string& meaning) { return with(of_type("array", meaning), "items", item); }

Json map(const Json& value, const std::string& meaning) {
  return with(of_type("object", meaning), "additionalProperties", value);
}

Json either(const std::vector<Json>& shapes, const std::string& meaning) {
  return with_meaning(meaning, {{"anyOf", Json(shapes)}});
}

Json scalar() { return {{"type", {"number", "string", "boolean"}}}; }

Json with_meaning(const std::string& meaning, Json schema) {
  if (meaning.empty()) return schema;
  Json described = {{"description", meaning}};
  schema.erase("description");
  described.update(schema);
  return described;
}

Json with_default(Json schema, const Json& value) { return with(std::move(schema), "default", value); }

Json not_empty(Json schema) {
  const char* key = schema["type"] == "array" ? "minItems" : "minLength";
  return with(std::move(schema), key, 1);
}

Json object(const std::string& meaning, const std::vector<Key>& keys) {
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
