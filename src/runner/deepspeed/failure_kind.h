#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "deepspeed/python_exception.h"

// What a failed DeepSpeed job's words mean. Private to this layer.
namespace krigtune {

/// Of the launcher itself, or of the set-up of the process group (torch.distributed, DeepSpeed's init_distributed).
bool is_of_the_launcher(const PythonException& cause);

/// NCCL could not connect the ranks: its own complaint before the first step.
bool is_of_the_network(const PythonException& cause, std::int64_t steps);

/// The script opens its configuration by itself, and it was given as base64.
bool opens_base64(const PythonException& cause);

/// DeepSpeed's refusal of its configuration: pydantic's, its own types, assertions and the like that it raises itself
/// before the first step (after one they are bugs); a Hugging Face Trainer's of contradicting values; JSON that is
/// none.
bool is_a_refusal(const PythonException& cause, std::int64_t steps);

/// What was refused, in a line: pydantic's and the Trainer's reasons stand below the exception.
std::string refusal_text(const PythonException& cause);

/// Host memory ran out, not a device's.
bool is_of_host_memory(const std::string& line);

/// The first line that a launcher, a shell, ssh, Python or argparse says of a job that it cannot start; "": there is
/// none.
std::string find_launcher_line(const std::string& text);

/// The port that was taken already.
std::optional<std::string> port_in_use(const std::string& line);

/// A rank's line without the launcher's label and blanks.
std::string without_label(const std::string& line);

}  // namespace krigtune
