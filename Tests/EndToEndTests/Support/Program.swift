import AssentCore
import AssentPeers
import Foundation
import TestSupport

/// The `assent` program with a home directory of its own, as a person runs it whose terminal has no display.
struct Program: Sendable {
    /// What it did.
    struct Result: Sendable {
        let status: Int32
        let output: String
        let errors: String
    }

    let home: String

    /// A home below `directory`, with the client's file in it.
    init(below directory: String, client: String) throws {
        home = directory + "/home"
        try FileManager.default.createDirectory(
            atPath: home, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        try Data(client.utf8).write(to: URL(fileURLWithPath: clientFile))
    }

    var clientFile: String { home + "/client.yaml" }

    /// Makes a file with a secret that only this user may read.
    func keep(_ secret: String, in path: String) throws {
        guard
            FileManager.default.createFile(
                atPath: path, contents: Data(secret.utf8), attributes: [.posixPermissions: 0o600])
        else { throw PeerFailure("\(path) cannot be made") }
    }

    /// Runs it to its end, for ``Patience/seconds`` at most. After the lines its input has ended.
    func run(_ arguments: String..., typing lines: [String] = []) async throws -> Result {
        try await run(arguments, typing: lines)
    }

    func run(_ arguments: [String], typing lines: [String] = []) async throws -> Result {
        let running = try start(arguments, typing: !lines.isEmpty)
        if !lines.isEmpty {
            try running.type(lines)
            try running.endInput()
        }
        return await running.result()
    }

    /// Starts it, for ``Patience/seconds`` at most.
    ///
    /// - Parameters:
    ///   - arguments: its arguments.
    ///   - environment: what else it finds in its environment, or in place of what it usually finds.
    ///   - typing: whether something is going to be typed; otherwise there is nobody to ask.
    ///   - prefix: a program that runs it, and that program's arguments.
    /// - Returns: the program while it runs.
    /// - Throws: when it cannot be started.
    func start(
        _ arguments: [String], environment: [String: String] = [:], typing: Bool = false, under prefix: [String] = []
    ) throws -> Running {
        // Beside the tests' own executable, where SwiftPM puts it.
        let executable = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
            .appending(path: "assent").path
        return try Running(
            Running.limits + prefix + [executable] + arguments,
            typing: typing,
            environment: [
                "HOME": home, "XDG_STATE_HOME": home + "/state", "XDG_CONFIG_HOME": home + "/config",
                "PATH": "/usr/bin:/bin", "ASSENT_LEAST_SECONDS": "\(Patience.seconds)",
            ].merging(environment) { $1 })
    }

    /// Types a line of a page in a shell that is in ``home``, and what the line asks for.
    func type(_ line: String, _ answers: [String] = []) async throws -> Result {
        let running = try start(line: line, typing: !answers.isEmpty)
        if !answers.isEmpty {
            try running.type(answers)
            try running.endInput()
        }
        return await running.result()
    }

    /// Begins a line of a page in the same way. The directory of our programs is the first of its `PATH`.
    func start(line: String, environment: [String: String] = [:], typing: Bool = false) throws -> Running {
        let script = "cd '\(home)'; PATH=${1%/*}:$PATH; \(line)"
        return try start([], environment: environment, typing: typing, under: ["/bin/sh", "-c", script, "sh"])
    }

    /// Does something beside a program that a line of a page starts, and that goes on until Ctrl-C ends it.
    ///
    /// - Parameters:
    ///   - line: the line.
    ///   - environment: what else it finds in its environment.
    ///   - body: what is done meanwhile.
    /// - Returns: what the program said and how it ended.
    /// - Throws: when it cannot be started, and what `body` throws; it has ended then.
    @discardableResult
    func beside(
        _ line: String, environment: [String: String] = [:], _ body: (Running) async throws -> Void
    ) async throws -> Result {
        // The shell becomes the program: Ctrl-C is for the program alone.
        let running = try start(line: "exec \(line)", environment: environment, typing: true)
        do {
            try await body(running)
        } catch {
            running.interrupt()
            _ = await running.result()
            throw error
        }
        running.interrupt()
        return await running.result()
    }

    /// The program while it runs.
    final class Running: Sendable {
        /// What timeout(1) is told before the program. By itself it sends a signal that it gets to the program and then
        /// to their group, which a server may take for a second Ctrl-C; and from a signal on the program has only the
        /// seconds of `--kill-after` to end, which a busy machine may need more of.
        static let limits = ["--foreground", "--kill-after=\(Patience.seconds)", "\(Patience.seconds)"]

        private let process: SpawnedProcess
        private let output: Lines
        private let errors: Lines

        init(_ arguments: [String], typing: Bool = false, environment: [String: String]) throws {
            process = try SpawnedProcess(
                "/usr/bin/timeout", arguments, environment: environment, input: typing ? .pipe : .nothing,
                output: .pipe, errors: .pipe)
            guard let output = process.output, let errors = process.errors else {
                throw PeerFailure("assent has no output")
            }
            (self.output, self.errors) = (Lines(output), Lines(errors))
        }

        /// The first line of its standard output, from where it was read before, that has `text` in it.
        ///
        /// - Throws: ``PeerFailure`` when it ends without one.
        func line(with text: String) async throws -> String {
            guard let line = await output.first(with: text) else {
                throw PeerFailure("assent ended: \(await errors.all())")
            }
            return line
        }

        /// The same, of its standard error.
        func errorLine(with text: String) async throws -> String {
            guard let line = await errors.first(with: text) else { throw PeerFailure("assent ended without \(text)") }
            return line
        }

        /// The last word of the next such line that has a name in front of it.
        func value(of name: String) async throws -> String {
            guard let word = try await line(with: "  \(name) ").split(separator: " ").last else {
                throw PeerFailure("\(name) has no value")
            }
            return String(word)
        }

        /// Types lines; more may follow. A program that has ended does not read them, which is no error here: on a
        /// busy machine it may end before the first one is typed, and ``result()`` says what became of it.
        ///
        /// - Throws: ``PeerFailure`` when it was started so that nothing can be typed.
        func type(_ lines: [String]) throws {
            guard let input = process.input else { throw PeerFailure("nothing can be typed at the program") }
            let text = lines.map { $0 + "\n" }.joined()
            try? input.write(contentsOf: Data(text.utf8))
        }

        /// Types no more.
        func endInput() throws { try process.input?.close() }

        /// Waits for its end.
        func result() async -> Result {
            let (output, errors) = (await output.all(), await errors.all())
            let status = await process.ended()
            return Result(status: status, output: output, errors: errors)
        }

        /// Ends it as Ctrl-C does.
        func interrupt() { process.signal(SIGINT) }
    }
}

/// What a process writes, line by line, read on a thread on which waiting holds nobody up.
private final class Lines: Sendable {
    private let stream: AsyncStream<String>
    private let read = Locked<[String]>([])

    init(_ pipe: FileHandle) {
        let (stream, continuation) = AsyncStream.makeStream(of: String.self)
        self.stream = stream
        let handle = pipe.fileDescriptor
        Thread.detachNewThread {
            // Kept open as long as it is read.
            withExtendedLifetime(pipe) {
                var line: [UInt8] = []
                var bytes = [UInt8](repeating: 0, count: 4096)
                while true {
                    let count = Glibc.read(handle, &bytes, bytes.count)
                    if count <= 0 { break }
                    for byte in bytes.prefix(count) {
                        if byte == UInt8(ascii: "\n") {
                            continuation.yield(String(decoding: line, as: UTF8.self))
                            line = []
                        } else {
                            line.append(byte)
                        }
                    }
                }
                if !line.isEmpty { continuation.yield(String(decoding: line, as: UTF8.self)) }
                continuation.finish()
            }
        }
    }

    func first(with text: String) async -> String? {
        for await line in stream {
            read.withLock { $0.append(line) }
            if line.contains(text) { return line }
        }
        return nil
    }

    func all() async -> String {
        _ = await first(with: "\u{0}")
        return read.withLock { $0.joined(separator: "\n") }
    }
}
