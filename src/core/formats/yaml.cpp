#include "core/formats/yaml.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"

namespace krigtune {
namespace {

/// Counts a document's nodes with all aliases written out: a few lines can stand for 10^9 nodes, or for endless ones.
class Size {
 public:
  explicit Size(const std::string& prefix) : prefix_(prefix) {}

  void add(const YAML::Node& node, std::size_t depth) {
    constexpr std::size_t kMostNodes = 100'000;
    if (depth > kDeepestNesting) {
      throw UserError(fmt::format("{}nested more than {} deep", prefix_, kDeepestNesting), "name a flatter file");
    }
    if (++nodes_ > kMostNodes) {
      throw UserError(fmt::format("{}more than {} values, with its aliases written out", prefix_, kMostNodes),
                      "name a smaller file");
    }
    if (!node.IsMap() && !node.IsSequence()) return;
    for (const auto& entry : node) {
      if (node.IsMap()) add(entry.first, depth + 1);
      add(node.IsMap() ? entry.second : YAML::Node(entry), depth + 1);
    }
  }

 private:
  const std::string& prefix_;
  std::size_t nodes_ = 0;
};

}  // namespace

std::vector<YAML::Node> parse_yaml(std::string_view text, const std::string& source) {
  const std::string prefix = source.empty() ? "" : source + ": ";
  std::vector<YAML::Node> documents;
  try {
    documents = YAML::LoadAll(std::string(text));
  } catch (const YAML::Exception& error) {
    const int line = error.mark.is_null() ? 1 : error.mark.line + 1;
    throw UserError(fmt::format("{}invalid YAML at line {}: {}", prefix, line, error.msg), "fix that line");
  }
  Size size(prefix);
  for (const YAML::Node& document : documents) size.add(document, 0);
  return documents;
}

}  // namespace krigtune
