#pragma once
#include <charconv>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

#include "core/csv.h"
#include "space/configuration.h"
#include "workload/workload.h"

namespace krigtune::accuracy {

/// A CSV file with named columns. Throws std::runtime_error if a requested column or value is missing.
class Table {
 public:
  explicit Table(const std::filesystem::path& path);

  std::size_t rows() const { return table_.rows.size(); }
  const std::string& text(std::size_t row, std::string_view column) const;
  std::int64_t integer(std::size_t row, std::string_view column) const { return number<std::int64_t>(row, column); }
  double real(std::size_t row, std::string_view column) const { return number<double>(row, column); }

 private:
  template <class Number>
  Number number(std::size_t row, std::string_view column) const {
    const std::string& digits = text(row, column);
    Number value{};
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size()) {
      throw std::runtime_error(source_ + ": '" + digits + "' is no number");
    }
    return value;
  }

  std::string source_;
  CsvTable table_;
};

/// `network` is the network between nodes.
workload::ClusterSpec gpus(std::int64_t count, std::int64_t per_node, const std::string& gpu,
                           const std::string& network);

/// GPT as Megatron trains it, with its vocabulary padded to 51200.
workload::ModelSpec gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t seq_len);
/// A Llama with these sizes.
workload::ModelSpec llama(workload::ModelSpec sizes);

/// A configuration at ZeRO stage 0.
space::Configuration parallel(std::int64_t micro_batch, std::int64_t tensor, std::int64_t stages);

}  // namespace krigtune::accuracy
