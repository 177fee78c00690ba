import Foundation
import TestSupport

/// A process that this one starts. It ends with ``stop()``, or when this process ends, however that comes about.
package final class ChildProcess {
    /// Its id, for reading what it has used.
    package let id: Int32

    private let watcher: SpawnedProcess

    /// A shell waits for its standard input to end, which it does at the latest with this process, then ends the child
    /// and removes the directory.
    private static let script = """
        trap '' INT
        directory=$1
        shift
        sh -c 'echo $$; exec "$@"' sh "$@" </dev/null &
        child=$!
        exec >&-
        read -r _
        kill -KILL "$child" 2>/dev/null
        wait "$child" 2>/dev/null
        [ -z "$directory" ] || rm -rf -- "$directory"
        """

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - executable: its path.
    ///   - arguments: its arguments.
    ///   - directory: what is removed when it has ended.
    /// - Throws: ``PeerFailure`` when it cannot be started.
    package init(_ executable: String, _ arguments: [String], removing directory: String = "") throws {
        watcher = try SpawnedProcess(
            "/bin/sh", ["-c", Self.script, "sh", directory, executable] + arguments, input: .pipe, output: .pipe)
        guard let id = Self.line(of: watcher).flatMap({ Int32($0) }) else {
            throw PeerFailure("cannot start \(executable)")
        }
        self.id = id
    }

    deinit { stop() }

    /// The next line that it writes; `nil` when there is none any more.
    package func line() -> String? { Self.line(of: watcher) }

    /// Ends it.
    package func stop() {
        guard watcher.isRunning else { return }
        try? watcher.input?.write(contentsOf: Data("\n".utf8))
        _ = watcher.wait()
    }

    /// The seconds that a processor has worked for it so far, in user and in kernel mode, in all its threads.
    package var processorTime: Double {
        get throws {
            let text = try String(contentsOfFile: "/proc/\(id)/stat", encoding: .utf8)
            // The name in parentheses may have spaces; after it come state, parent, and so on (proc(5)).
            let fields = text[(text.lastIndex(of: ")") ?? text.startIndex)...].split(separator: " ")
            guard fields.count > 13, let user = Double(fields[12]), let kernel = Double(fields[13]) else {
                throw PeerFailure("/proc/\(id)/stat cannot be read")
            }
            return (user + kernel) / Double(sysconf(Int32(_SC_CLK_TCK)))
        }
    }

    private static func line(of process: SpawnedProcess) -> String? {
        var line: [UInt8] = []
        while line.count < 64 << 10, let byte = try? process.output?.read(upToCount: 1)?.first {
            if byte == UInt8(ascii: "\n") { return String(decoding: line, as: UTF8.self) }
            line.append(byte)
        }
        return nil
    }
}
