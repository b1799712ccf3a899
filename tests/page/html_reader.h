#pragma once
#include <set>
#include <string>
#include <vector>

namespace krigtune {

/// A strict reader of the HTML that krigtune writes: only void elements have no end tag, attributes are quoted, "&" and
/// "<" occur only as markup. It reports the first error, and collects what tests need.
class HtmlReader {
 public:
  explicit HtmlReader(const std::string& html) : html_(html) { read(); }

  const std::string& fault() const { return fault_; }  ///< "": none
  const std::set<std::string>& ids() const { return ids_; }
  const std::vector<std::string>& links() const { return links_; }  ///< values of href
  int count(const std::string& tag) const {
    int found = 0;
    for (const std::string& one : tags_) found += one == tag ? 1 : 0;
    return found;
  }
  const std::string& text() const { return text_; }  ///< outside of tags, style and script, with entities unchanged

 private:
  static bool is_void(const std::string& tag) {
    return tag == "meta" || tag == "input" || tag == "br" || tag == "wbr" || tag == "!DOCTYPE";
  }
  void fail(const std::string& what, std::size_t at) {
    if (fault_.empty()) fault_ = what + " at: " + html_.substr(at, 80);
  }
  void read() {
    std::size_t at = 0;
    while (at < html_.size() && fault_.empty()) {
      if (html_[at] == '<') {
        at = read_tag(at);
      } else {
        at = read_text(at);
      }
    }
    if (!open_.empty()) fail("not closed: " + open_.back(), 0);
  }
  std::size_t read_text(std::size_t at) {
    if (html_[at] == '>') fail("a bare >", at);
    if (html_[at] == '&') check_reference(at);
    text_ += html_[at];
    return at + 1;
  }
  void check_reference(std::size_t at) {
    const std::size_t end = html_.find(';', at);
    if (end == std::string::npos || end - at > 6) fail("a bare &", at);
  }
  std::size_t read_tag(std::size_t at) {
    std::size_t end = at + 1;
    bool is_quoted = false;
    for (; end < html_.size() && (is_quoted || html_[end] != '>'); ++end) {
      if (html_[end] == '"') is_quoted = !is_quoted;
      if (html_[end] == '<') fail("< within a tag", at);
      if (is_quoted && html_[end] == '&') check_reference(end);
    }
    if (end == html_.size()) fail("a tag without end", at);
    const std::string inside = html_.substr(at + 1, end - at - 1);
    if (inside.front() == '/') {
      if (open_.empty() || open_.back() != inside.substr(1)) fail("closes nothing", at);
      if (!open_.empty()) open_.pop_back();
      return end + 1;
    }
    const std::string name = inside.substr(0, inside.find_first_of(" /\n"));
    tags_.push_back(name);
    read_attributes(inside, at);
    if (!is_void(name) && inside.back() != '/') open_.push_back(name);
    if (name != "script" && name != "style") return end + 1;
    const std::size_t close = html_.find("</" + name, end);
    if (close == std::string::npos) fail("not closed", at);
    return close == std::string::npos ? html_.size() : close;
  }
  void read_attributes(const std::string& inside, std::size_t at) {
    for (std::size_t equals = inside.find('='); equals != std::string::npos; equals = inside.find('=', equals)) {
      if (inside[equals + 1] != '"') fail("an attribute without quotes", at);
      const std::size_t begin = inside.rfind(' ', equals) + 1;
      const std::string name = inside.substr(begin, equals - begin);
      const std::size_t end = inside.find('"', equals + 2);
      const std::string value = inside.substr(equals + 2, end - equals - 2);
      if (name == "id" && !ids_.insert(value).second) fail("a second id " + value, at);
      if (name == "href") links_.push_back(value);
      if (name == "src" || name.rfind("on", 0) == 0) fail("an attribute that a page must not have: " + name, at);
      equals = end;
    }
  }

  const std::string& html_;
  std::string fault_;
  std::string text_;
  std::set<std::string> ids_;
  std::vector<std::string> links_;
  std::vector<std::string> tags_;
  std::vector<std::string> open_;
};

}  // namespace krigtune
