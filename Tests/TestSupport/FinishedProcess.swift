import CSpawn
import Foundation

/// A program that has run to its end, and what it has written.
package struct FinishedProcess: Sendable {
    /// Its exit status, or the negative number of the signal that has ended it.
    package let status: Int32

    /// What it has written to its standard output.
    package let output: [UInt8]

    /// What it has written to its standard error.
    package let errors: [UInt8]

    /// ``output`` as text.
    package var text: String { String(decoding: output, as: UTF8.self) }

    /// ``errors`` as text.
    package var complaints: String { String(decoding: errors, as: UTF8.self) }

    /// Runs a program to its end.
    ///
    /// What it reads and writes are files, so nobody waits for a pipe.
    /// - Parameters:
    ///   - executable: its path.
    ///   - arguments: its arguments, without its name.
    ///   - environment: its environment; `nil` stands for this process's.
    ///   - directory: where it works; `nil` stands for where this process does.
    ///   - input: what it can read.
    /// - Returns: how it has ended, and what it has written.
    /// - Throws: ``SpawnFailure``.
    package static func run(
        _ executable: String, _ arguments: [String] = [], environment: [String: String]? = nil,
        directory: String? = nil, input: [UInt8] = []
    ) throws -> FinishedProcess {
        let (source, output, errors) = (try file(), try file(), try file())
        try source.write(contentsOf: Data(input))
        try source.seek(toOffset: 0)
        let process = try SpawnedProcess(
            executable, arguments, environment: environment, directory: directory, input: .file(source),
            output: .file(output), errors: .file(errors))
        return FinishedProcess(status: process.wait(), output: try content(output), errors: try content(errors))
    }

    private static func file() throws -> FileHandle {
        let descriptor = cspawn_file()
        guard descriptor >= 0 else { throw SpawnFailure(description: "no temporary file: \(errno)") }
        return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    private static func content(_ file: FileHandle) throws -> [UInt8] {
        try file.seek(toOffset: 0)
        return [UInt8](try file.readToEnd() ?? Data())
    }
}
