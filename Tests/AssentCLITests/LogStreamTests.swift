import AssentCore
import AssentPeers
import Foundation
import Logging
import TestSupport
import Testing

@testable import AssentCLI

@Suite("The log of a server whose reader stands still")
struct LogStreamTests {
    /// A pipe, and what its reader has not taken yet.
    private final class StillReader: Sendable {
        let reading: Int32
        let writing: Int32

        init() throws {
            var ends: [Int32] = [-1, -1]
            let made = Foundation.pipe(&ends)
            try #require(made == 0)
            (reading, writing) = (ends[0], ends[1])
            _ = fcntl(reading, F_SETFL, O_NONBLOCK)
        }

        deinit {
            close(reading)
            close(writing)
        }

        /// Writes until there is no room for a page.
        func fill() {
            _ = fcntl(writing, F_SETFL, O_NONBLOCK)
            let page = [UInt8](repeating: UInt8(ascii: "."), count: 4096)
            while Foundation.write(writing, page, page.count) > 0 {}
            _ = fcntl(writing, F_SETFL, 0)
        }

        /// Takes so many bytes, or all that there are.
        func take(_ limit: Int = 1 << 20) -> String {
            var bytes = [UInt8](repeating: 0, count: limit)
            var text = ""
            while text.utf8.count < limit {
                let count = Foundation.read(reading, &bytes, limit - text.utf8.count)
                guard count > 0 else { break }
                text += String(decoding: bytes.prefix(count), as: UTF8.self)
            }
            return text
        }
    }

    @Test("Lines that nobody takes hold nobody up, and the next one that is taken says how many are missing")
    func stalled() throws {
        let reader = try StillReader()
        let stream = LogStream(descriptor: reader.writing, patience: 0)
        let logger = Logger(label: "test", factory: { StreamLogHandler(label: $0, stream: stream) })
        logger.notice("first")
        let first = reader.take()
        #expect(first.contains("first") && first.hasSuffix("\n") && !first.contains("missing"))
        reader.fill()
        for _ in 0..<3 { logger.notice("lost") }
        _ = reader.take()
        logger.notice("second")
        let second = reader.take()
        #expect(second.hasPrefix("Lines of the log are missing here, because nobody took them: 3\n"), "\(second)")
        #expect(second.contains("second") && !second.contains("lost"))
        logger.notice("third")
        #expect(!reader.take().contains("missing"))
    }

    @Test("A line of which a part was taken ends before the next one")
    func cut() throws {
        let reader = try StillReader()
        let stream = LogStream(descriptor: reader.writing, patience: 0)
        reader.fill()
        #expect(reader.take(4096).utf8.count == 4096)
        stream.write(String(repeating: "a", count: 10_000) + "\n")
        #expect(reader.take().hasSuffix(".a" + String(repeating: "a", count: 4095)))
        stream.write("whole\n")
        #expect(
            reader.take() == "\nLines of the log are missing here, because nobody took them: 1\nwhole\n")
    }

    @Test("A server that does not start ends, too, where nobody takes what it says")
    func refused() throws {
        let reader = try StillReader()
        reader.fill()
        let errors = FileHandle(fileDescriptor: reader.writing, closeOnDealloc: false)
        let process = try SpawnedProcess(
            BuiltProgram.beside("assent").path, ["serve", "--config", "/nowhere/assent.yaml"], errors: .file(errors))
        #expect(process.wait() == 78)
        #expect(!reader.take().contains("assent"))
    }

    /// A directory with a server's file.
    private func home() throws -> URL {
        let directory = FileManager.default.temporaryDirectory.appending(path: "assent-still-\(SystemRandom().uuid())")
        try FileManager.default.createDirectory(
            at: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        let yaml = """
            development: true
            publicURL: https://localhost:0/am
            listen: {host: 127.0.0.1, port: 0}
            dataDirectory: data
            realms: {alpha: {users: [{username: ana, credentials: generated}]}}
            """
        try Data(yaml.utf8).write(to: directory.appending(path: "assent.yaml"))
        return directory
    }

    /// Starts a server and waits until it serves.
    private func serve(
        _ home: URL, output: SpawnedProcess.Stream, environment: [String: String] = [:]
    ) throws -> SpawnedProcess {
        let process = try SpawnedProcess(
            BuiltProgram.beside("assent").path, ["serve", "--config", home.appending(path: "assent.yaml").path],
            environment: ProcessInfo.processInfo.environment.merging(environment) { $1 }, output: output,
            errors: .pipe)
        let errors = try #require(process.errors)
        var log = ""
        while !log.contains(" serving"), case let data = errors.availableData, !data.isEmpty {
            log += String(decoding: data, as: UTF8.self)
        }
        try #require(log.contains(" serving"), "\(log)")
        return process
    }

    /// What comes until the end.
    private func rest(of handle: FileHandle?) throws -> String {
        let handle = try #require(handle)
        var text = Data()
        while case let data = handle.availableData, !data.isEmpty { text += data }
        return String(decoding: text, as: UTF8.self)
    }

    @Test("A server ends when it is told to, also where nobody takes what it says first; what is lost it logs")
    func announced() throws {
        let home = try home()
        defer { try? FileManager.default.removeItem(at: home) }
        let reader = try StillReader()
        reader.fill()
        let output = FileHandle(fileDescriptor: reader.writing, closeOnDealloc: false)
        let process = try serve(home, output: .file(output))
        process.signal(SIGTERM)
        let log = try rest(of: process.errors)
        #expect(process.wait() == 0)
        #expect(log.contains("The credentials that were shown once are lost."), "\(log)")
        #expect(!reader.take().contains("Server:"))
    }

    @Test("What a server says at its start is said to the end, also where it is told to end at once")
    func endedAtOnce() throws {
        let home = try home()
        defer { try? FileManager.default.removeItem(at: home) }
        // Its reader takes it, and may have to wait for a processor before that.
        let process = try serve(
            home, output: .pipe, environment: ["ASSENT_LEAST_SECONDS": "\(Patience.seconds)"])
        process.signal(SIGTERM)
        let said = try rest(of: process.output)
        #expect(process.wait() == 0)
        #expect(said.contains("Server:") && said.contains("shown this once:"), "\(said)")
        let log = try rest(of: process.errors)
        #expect(!log.contains("are lost"), "\(log)")
    }

    @Test("Lines that a descriptor refuses hold nobody up either, and the next one that is taken says how many")
    func refusing() throws {
        let reader = try StillReader()
        let descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        let stream = LogStream(descriptor: descriptor, patience: 0)
        stream.write("lost\n")
        stream.write("lost\n")
        try #require(dup2(reader.writing, descriptor) == descriptor)
        stream.write("whole\n")
        #expect(reader.take() == "Lines of the log are missing here, because nobody took them: 2\nwhole\n")
    }
}
