import Foundation

/// What this process has in memory, as Linux counts it (proc_pid_status(5)).
enum ResidentMemory {
    /// Now, in MiB.
    static var now: Double { get throws { try figure("VmRSS") } }

    /// The most since ``forgetPeak()``, in MiB.
    static var peak: Double { get throws { try figure("VmHWM") } }

    /// Lets the peak begin at what is there now.
    static func forgetPeak() throws {
        guard let file = FileHandle(forWritingAtPath: "/proc/self/clear_refs") else {
            throw BenchFailure("the peak of the memory cannot be reset")
        }
        defer { try? file.close() }
        try file.write(contentsOf: Data("5".utf8))
    }

    private static func figure(_ name: String) throws -> Double {
        let text = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = text.split(separator: "\n").first { $0.hasPrefix(name + ":") }
        guard let kibibytes = line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap({ Double($0) })
        else { throw BenchFailure("/proc/self/status has no \(name)") }
        return kibibytes / 1024
    }
}
