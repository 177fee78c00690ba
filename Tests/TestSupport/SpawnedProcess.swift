import AssentCore
import CSpawn
package import Foundation

/// Why a program could not be started or waited for.
package struct SpawnFailure: Error, CustomStringConvertible {
    package let description: String
}

/// A program that a test starts. It gets its three standard streams and no other descriptor.
///
/// Foundation's `Process` also hands on what other threads open in the moment of starting. Then a pipe whose other end
/// a stranger holds never ends, and whoever reads it waits for the stranger.
///
/// It is killed at the latest when the last reference is gone.
package final class SpawnedProcess: Sendable {
    /// Where a standard stream leads.
    package enum Stream {
        /// Nothing comes, or all is thrown away.
        case nothing
        /// A pipe to this process.
        case pipe
        /// What this process has itself.
        case inherited
        /// An open file.
        case file(FileHandle)
    }

    /// Its process id.
    package let id: Int32

    /// The other end of its standard input, if that is a pipe.
    package let input: FileHandle?

    /// The other end of its standard output, if that is a pipe.
    package let output: FileHandle?

    /// The other end of its standard error, if that is a pipe.
    package let errors: FileHandle?

    private let status = Locked<Int32?>(nil)

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - executable: its path.
    ///   - arguments: its arguments, without its name.
    ///   - environment: its environment; `nil` stands for this process's.
    ///   - directory: where it works; `nil` stands for where this process does.
    ///   - input: its standard input.
    ///   - output: its standard output.
    ///   - errors: its standard error.
    /// - Throws: ``SpawnFailure``.
    package init(
        _ executable: String, _ arguments: [String] = [], environment: [String: String]? = nil,
        directory: String? = nil, input: Stream = .nothing, output: Stream = .nothing, errors: Stream = .inherited
    ) throws {
        // A program may end while it is being told something: an error, not this process's end.
        if case .pipe = input { _ = Foundation.signal(SIGPIPE, SIG_IGN) }
        let nothing = try Self.nothing()
        let (streams, kept) = try Self.connect([input, output, errors], nothing)
        let environment = environment ?? ProcessInfo.processInfo.environment
        let words = ([executable] + arguments).map { strdup($0) } + [nil]
        let variables = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for text in words + variables { free(text) } }
        var process: Int32 = 0
        let descriptors = streams.map(\.fileDescriptor)
        let error = withExtendedLifetime(streams) {
            cspawn_start(&process, executable, words, variables, directory, descriptors)
        }
        guard error == 0 else { throw SpawnFailure(description: "\(executable): \(String(cString: strerror(error)))") }
        id = process
        (self.input, self.output, self.errors) = (kept[0], kept[1], kept[2])
    }

    /// Starts a program as the leader of a session at a terminal, from which it reads and to which it writes.
    ///
    /// - Parameters:
    ///   - executable: its path.
    ///   - arguments: its arguments, without its name.
    ///   - environment: its environment.
    ///   - terminal: the terminal.
    /// - Throws: ``SpawnFailure``.
    package init(
        _ executable: String, _ arguments: [String] = [], environment: [String: String], at terminal: PseudoTerminal
    ) throws {
        let words = ([executable] + arguments).map { strdup($0) } + [nil]
        let variables = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for text in words + variables { free(text) } }
        var process: Int32 = 0
        let error = cspawn_start_at(&process, executable, words, variables, terminal.name)
        guard error == 0 else { throw SpawnFailure(description: "\(executable): \(String(cString: strerror(error)))") }
        id = process
        (input, output, errors) = (nil, nil, nil)
        Thread.detachNewThread { [id] in
            _ = cspawn_wait(id)
            terminal.programHasEnded()
        }
    }

    deinit {
        signal(SIGKILL)
        _ = wait()
    }

    /// Its exit status, or the negative number of the signal that has ended it; `nil` while it runs.
    package var exitStatus: Int32? {
        status.withLock { status in
            if status == nil {
                var taken: Int32 = 0
                if cspawn_reap(id, &taken) != 0 { status = taken }
            }
            return status
        }
    }

    /// Whether it has not ended.
    package var isRunning: Bool { exitStatus == nil }

    /// Sends it a signal, if it has not ended.
    package func signal(_ number: Int32) {
        // Until somebody has taken its status its number is nobody else's.
        status.withLock { if $0 == nil { _ = kill(id, number) } }
    }

    /// Waits until it has ended; descriptors that its own children still hold do not matter.
    ///
    /// - Returns: its exit status, or the negative number of the signal that has ended it.
    package func wait() -> Int32 {
        while true {
            if let exitStatus { return exitStatus }
            _ = cspawn_wait(id)
        }
    }

    /// Waits, after `SIGSTOP`, until all of its threads stand still: until then those that are awake go on. It blocks.
    package func waitUntilStopped() { _ = cspawn_wait_stopped(id) }

    /// Starts what kills it when this process ends, however that happens.
    package func guardian() throws -> SpawnedProcess {
        try SpawnedProcess("/bin/sh", ["-c", "read -r _; kill -KILL $0 2>/dev/null", "\(id)"], input: .pipe)
    }

    /// Waits for its end on a thread on which waiting holds nobody up.
    package func ended() async -> Int32 {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { continuation.resume(returning: self.wait()) }
        }
    }

    private static func nothing() throws -> FileHandle {
        guard let file = FileHandle(forUpdatingAtPath: "/dev/null") else {
            throw SpawnFailure(description: "/dev/null cannot be opened")
        }
        return file
    }

    /// What the program gets for each stream, and what this process keeps of it.
    private static func connect(
        _ streams: [Stream], _ nothing: FileHandle
    ) throws -> (given: [FileHandle], kept: [FileHandle?]) {
        let own = [FileHandle.standardInput, .standardOutput, .standardError]
        var given: [FileHandle] = []
        var kept: [FileHandle?] = []
        for (number, stream) in streams.enumerated() {
            switch stream {
            case .nothing: given.append(nothing)
            case .inherited: given.append(own[number])
            case .file(let file): given.append(file)
            case .pipe:
                var ends: [Int32] = [0, 0]
                let error = cspawn_pipe(&ends)
                guard error == 0 else { throw SpawnFailure(description: String(cString: strerror(error))) }
                let handles = ends.map { FileHandle(fileDescriptor: $0, closeOnDealloc: true) }
                given.append(handles[number == 0 ? 0 : 1])
                kept.append(handles[number == 0 ? 1 : 0])
                continue
            }
            kept.append(nil)
        }
        return (given, kept)
    }
}
