// A value is replaced in the text and not in the parsed document, because a library that writes the document again
// loses comments, order or quotes. The library gives the position of the value. After the replacement the new text is
// parsed, and it must equal the old document except for that value, so a mistake about a detail of the format cannot
// reach a job.
#include "runner/in_place_edit.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/columns.h"
#include "core/error.h"
#include "core/text.h"
#include "core/utf8.h"
#include "runner/in_place_text.h"
#include "space/configuration.h"

namespace krigtune::runner {
namespace {

TextFormat text_format(FileFormat format) {
  switch (format) {
    case FileFormat::kYaml:
      return yaml_format();
    case FileFormat::kToml:
      return toml_format();
    default:
      return json_format();
  }
}

// Calls `visit(name, rest)` for each way to split a first name off a key, because names may contain dots.
template <class Visit>
bool for_each_cut(const std::string& key, const Visit& visit) {
  for (std::size_t dot = key.find('.'); dot != std::string::npos; dot = key.find('.', dot + 1)) {
    if (visit(key.substr(0, dot), key.substr(dot + 1))) return true;
  }
  return visit(key, std::string());
}

// Returns the nodes from the root's child to the one that the key names; empty if it is missing.
std::vector<const TextNode*> nodes_on(const TextNode& root, const std::string& key) {
  std::vector<const TextNode*> nodes;
  for_each_cut(key, [&](const std::string& name, const std::string& rest) {
    const TextNode* child = root.child(name);
    if (child == nullptr) return false;
    nodes = {child};
    if (rest.empty() && name.size() == key.size()) return true;
    const std::vector<const TextNode*> below = nodes_on(*child, rest);
    if (below.empty()) nodes.clear();
    nodes.insert(nodes.end(), below.begin(), below.end());
    return !nodes.empty();
  });
  return nodes;
}

// How far a key can be followed: the last table or list, the names that lead to it, and the names missing below it.
struct Missing {
  const TextNode* table;
  std::vector<std::string> path;
  std::vector<std::string> names;
};

Missing missing_in(const TextNode& root, const std::string& key) {
  Missing missing{&root, {}, {}};
  std::string rest = key;
  while (!rest.empty()) {
    const std::size_t dot = std::min(rest.find('.'), rest.size());
    const std::string name = rest.substr(0, dot);
    const TextNode* child = missing.names.empty() ? missing.table->child(name) : nullptr;
    if (child != nullptr) {
      missing.table = child;
      missing.path.push_back(name);
    } else {
      missing.names.push_back(name);
    }
    rest = dot == rest.size() ? "" : rest.substr(dot + 1);
  }
  return missing;
}

std::vector<std::string> names_in(const TextNode& node) {
  std::vector<std::string> names;
  for (const TextNode& child : node.children) names.push_back(child.name);
  return names;
}

[[noreturn]] void fail_missing(const std::string& key, const Missing& missing) {
  const std::string near = nearest_name(missing.names.front(), names_in(*missing.table));
  const std::string where = missing.path.empty() ? "" : fmt::format(" in '{}'", join(missing.path, "."));
  if (missing.table->is == TextNode::Is::kList) {
    throw UserError(fmt::format("there is no '{}'{}", missing.names.front(), where),
                    fmt::format("it is a list of {}: write its positions from 0", missing.table->children.size()));
  }
  throw UserError(fmt::format("there is no '{}'{}", missing.names.front(), where),
                  near.empty() ? fmt::format("write '+{}' to add it", key)
                               : fmt::format("did you mean '{}'? '+{}' would add it", near, key));
}

bool is_duplicate(const TextNode& table, const std::string& name) {
  return std::count_if(table.children.begin(), table.children.end(),
                       [&](const TextNode& child) { return child.name == name; }) > 1;
}

void refuse_duplicates(const TextNode& root, const std::vector<const TextNode*>& nodes) {
  const TextNode* table = &root;
  for (const TextNode* node : nodes) {
    if (is_duplicate(*table, node->name))
      throw UserError(fmt::format("'{}' is there twice", node->name), "remove one of them");
    table = node;
  }
}

// Returns whether the documents differ only at `replaced`, which is `is` now, and at the aliases of its anchor.
bool same_nodes(const TextNode& old, const TextNode& now, const TextNode* replaced, TextNode::Is is) {
  const bool is_replaced =
      replaced != nullptr &&
      (&old == replaced || (!replaced->is_alias && replaced->definition != kNowhere &&
                            old.definition == replaced->definition && old.is == TextNode::Is::kValue));
  if (is_replaced) return now.is == is;
  if (old.is != now.is || old.name != now.name || old.kind != now.kind || old.text != now.text ||
      old.children.size() != now.children.size()) {
    return false;
  }
  for (std::size_t i = 0; i < old.children.size(); ++i) {
    if (!same_nodes(old.children[i], now.children[i], replaced, is)) return false;
  }
  return true;
}

// Returns the node with the same names in the new document, or nullptr.
const TextNode* same_place(const TextNode& now, const std::vector<std::string>& names) {
  const TextNode* node = &now;
  for (const std::string& name : names) {
    if (node != nullptr) node = node->child(name);
  }
  return node;
}

std::vector<std::string> names_on(const std::vector<const TextNode*>& nodes) {
  std::vector<std::string> names;
  for (const TextNode* node : nodes) names.push_back(node->name);
  return names;
}

bool says(const TextNode* node, const NewValue& value) {
  if (node == nullptr || node->is != TextNode::Is::kValue) return false;
  if (is_null(value) && node->kind == "null") return true;
  return node->text == value.text ||
         (!value.is_text && reads_as_number(value.text) && reads_as_number(node->text) &&
          space::same_value(space::value_from_text(value.text), space::value_from_text(node->text)));
}

std::optional<TextNode> read_again(const TextFormat& format, const std::string& document) {
  try {
    return format.read(document);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

[[noreturn]] void fail_place(const std::string& key) {
  throw UserError(fmt::format("'{}' cannot be replaced in place", key),
                  "write the value plainly on the line of its key, or use \"templates\"");
}

std::string replaced_value(const TextFormat& format, const std::string& document, const TextNode& root,
                           const std::vector<const TextNode*>& nodes, const std::string& key, const NewValue& value) {
  const TextNode& old = *nodes.back();
  if (old.is != TextNode::Is::kValue) {
    throw UserError(fmt::format("'{}' is a {}, no single value", key, old.is == TextNode::Is::kList ? "list" : "table"),
                    old.is == TextNode::Is::kList ? fmt::format("name one in it: '{}.0'", key) : "name a key in it");
  }
  refuse_duplicates(root, nodes);
  if (old.begin == kNowhere || old.end == kNowhere) fail_place(key);
  std::string changed = with_text_at(document, old.begin, old.end, format.written(document, value, &old));
  const std::optional<TextNode> now = read_again(format, changed);
  if (!now || !same_nodes(root, *now, &old, TextNode::Is::kValue) || !says(same_place(*now, names_on(nodes)), value))
    fail_place(key);
  return changed;
}

// Removes the added value together with the tables that were created for its names.
void erase_added(TextNode& table, const std::vector<std::string>& path, const std::vector<std::string>& added) {
  TextNode* node = &table;
  for (const std::string& name : path) {
    for (TextNode& child : node->children) {
      if (child.name == name) {
        node = &child;
        break;
      }
    }
  }
  std::erase_if(node->children, [&](const TextNode& child) { return child.name == added.front(); });
}

bool is_added(const TextNode& root, TextNode now, const Missing& missing, const NewValue& value) {
  std::vector<std::string> names = missing.path;
  names.insert(names.end(), missing.names.begin(), missing.names.end());
  if (!says(same_place(now, names), value)) return false;
  erase_added(now, missing.path, missing.names);
  const bool was_empty = missing.table->is == TextNode::Is::kValue;  // a key without a value has become a table
  return same_nodes(root, now, was_empty ? missing.table : nullptr, TextNode::Is::kTable);
}

std::string added_value(const TextFormat& format, const std::string& document, const TextNode& root,
                        const std::string& key, const NewValue& value) {
  const Missing missing = missing_in(root, key);
  const bool is_empty = missing.table->is == TextNode::Is::kValue && missing.table->kind == "null";
  if (missing.table->is != TextNode::Is::kTable && !is_empty) {
    const std::string what = missing.path.empty() ? "the file" : fmt::format("'{}'", join(missing.path, "."));
    throw UserError(fmt::format("{} is not a table: no key can be added to it", what), "correct the key");
  }
  const std::string written = format.written(document, value, nullptr);
  for (std::string& changed : format.added(document, *missing.table, missing.path, missing.names, written)) {
    std::optional<TextNode> now = read_again(format, changed);
    if (now && is_added(root, std::move(*now), missing, value)) return std::move(changed);
  }
  throw UserError(fmt::format("'{}' cannot be added in place", key), "add it to the file, with any value");
}

}  // namespace

const TextNode* TextNode::child(std::string_view child_name) const {
  const auto found =
      std::find_if(children.begin(), children.end(), [&](const TextNode& node) { return node.name == child_name; });
  return found == children.end() ? nullptr : &*found;
}

std::string end_of_line_of(const std::string& document) {
  const std::size_t end = document.find('\n');
  return end != std::string::npos && end > 0 && document[end - 1] == '\r' ? "\r\n" : "\n";
}

std::string with_text_at(const std::string& document, std::size_t begin, std::size_t end, const std::string& text) {
  return document.substr(0, begin) + text + document.substr(end);
}

bool reads_as_number(std::string_view text) { return space::is_number(space::value_from_text(std::string(text))); }
bool reads_as_truth(std::string_view text) { return text == "true" || text == "false"; }

bool is_null(const NewValue& value) { return !value.is_text && value.text == "null"; }
bool stays_quoted(const NewValue& value, const TextNode& old) { return value.is_text || old.text != "auto"; }

std::optional<FileFormat> file_format_of(const std::filesystem::path& file) {
  const std::string extension = lower_case(file.extension().string());
  if (extension == ".yaml" || extension == ".yml") return FileFormat::kYaml;
  if (extension == ".toml") return FileFormat::kToml;
  if (extension == ".json") return FileFormat::kJson;
  return std::nullopt;
}

std::string with_value(FileFormat format, const std::string& document, const std::string& key, const NewValue& value,
                       IfMissing if_missing) {
  if (!is_utf8(key)) throw UserError(fmt::format("the key '{}' is not UTF-8, as the file is", visible(key)), "");
  const TextFormat functions = text_format(format);
  const TextNode root = functions.read(document);
  const std::vector<const TextNode*> nodes = nodes_on(root, key);
  if (!nodes.empty()) return replaced_value(functions, document, root, nodes, key, value);
  if (if_missing == IfMissing::kRefuse) fail_missing(key, missing_in(root, key));
  return added_value(functions, document, root, key, value);
}

}  // namespace krigtune::runner
