#pragma once
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace krigtune {

/// A vector of strings as exec wants it.
class CStrings {
 public:
  explicit CStrings(std::vector<std::string> texts) : texts_(std::move(texts)) {
    for (std::string& text : texts_) pointers_.push_back(text.data());
    pointers_.push_back(nullptr);
  }
  CStrings(const CStrings&) = delete;
  CStrings& operator=(const CStrings&) = delete;

  char* const* get() const { return pointers_.data(); }

 private:
  std::vector<std::string> texts_;
  std::vector<char*> pointers_;
};

/// The arguments of a program, behind its name.
inline CStrings command_line(const std::filesystem::path& program, const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return CStrings(std::move(words));
}

}  // namespace krigtune
