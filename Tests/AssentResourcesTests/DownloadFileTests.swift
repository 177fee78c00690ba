import AssentCore
import Foundation
import Testing

@testable import AssentResources

@Suite("Files of downloads")
struct DownloadFileTests {
    private func inDirectory(_ body: (URL) throws -> Void) throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "assent-download-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: directory) }
        try body(directory)
    }

    private func names(_ directory: URL) throws -> Set<String> {
        Set(try FileManager.default.contentsOfDirectory(atPath: directory.path))
    }

    private func make(_ name: String, in directory: URL, mode: Int = 0o600) throws {
        let path = directory.appending(path: name).path
        try #require(
            FileManager.default.createFile(
                atPath: path, contents: Data("part".utf8), attributes: [.posixPermissions: mode]))
    }

    private func download(_ name: String, in directory: URL) throws -> DownloadFile {
        try DownloadFile(at: directory.appending(path: name).path, random: SystemRandom())
    }

    @Test("What a process left unfinished that was killed is removed by the next download into its directory")
    func left() throws {
        try inDirectory { directory in
            for _ in 0..<3 { try make(".\(SystemRandom().uuid()).part", in: directory) }
            let file = try download("content", in: directory)
            #expect(try names(directory).count == 1)
            try file.write(Array("all".utf8))
            try file.commit()
            #expect(try names(directory) == ["content"])
        }
    }

    @Test("What a download is at work on stays, also one of this process, and so does what is not a download's")
    func others() throws {
        try inDirectory { directory in
            let used = try download("used", in: directory)
            try used.write(Array("half".utf8))
            let id = SystemRandom().uuid()
            for name in ["\(id).part", ".\(id).tmp", ".\(id.dropLast()).part", ".x.part", ".\(id).part.part"] {
                try make(name, in: directory)
            }
            try make(".\(SystemRandom().uuid()).part", in: directory, mode: 0o644)
            let folder = directory.appending(path: ".\(SystemRandom().uuid()).part")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
            let link = directory.appending(path: ".\(SystemRandom().uuid()).part").path
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "\(id).part")
            let before = try names(directory)
            let next = try download("next", in: directory)
            #expect(try names(directory).isSuperset(of: before))
            try used.write(Array(" more".utf8))
            try used.commit()
            next.discard()
            let content = try String(contentsOf: directory.appending(path: "used"), encoding: .utf8)
            #expect(content == "half more")
            #expect(try names(directory).count == before.count)
        }
    }
}
