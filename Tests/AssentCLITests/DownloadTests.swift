import ArgumentParser
import Assent
import AssentCore
import Foundation
import HTTPTypes
import Testing

@testable import AssentCLI

@Suite("assent request --download")
struct DownloadTests {
    /// Answers with what the test says.
    private struct Resource: HTTPTransport {
        let answer: @Sendable (HTTPCall) -> HTTPReply

        func send(_ call: HTTPCall) async throws -> HTTPReply { answer(call) }
    }

    private let home: VaultCommandTests.Home

    init() throws { home = try VaultCommandTests.Home() }

    private var place: URL { home.directory.appending(path: "downloads") }

    /// Calls as nobody, and says which files are there afterwards.
    private func download(
        _ name: String = "statement.pdf", _ answer: @escaping @Sendable (HTTPCall) -> HTTPReply
    ) async throws -> [String] {
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        var file = ClientFile(
            server: "https://a.example/am", realm: "/", cookieName: "session", clientID: "app",
            redirectURI: "http://127.0.0.1/callback", scopes: ["openid"], journey: "Login",
            resources: [.init(origin: "https://api.example", credential: "nothing")], authority: nil, pins: [])
        file.resourceBase = "https://api.example/v1"
        let places = Places(environment: [
            "HOME": home.directory.path, "XDG_CONFIG_HOME": home.directory.appending(path: "c").path,
            "XDG_STATE_HOME": home.directory.appending(path: "s").path,
        ])
        let command = try #require(
            try AssentCommand.parseAsRoot([
                "request", "--as", "nobody", "GET", "/statement", "--download", place.appending(path: name).path,
            ]) as? RequestCommand)
        try await command.perform(
            ClientProfile(file: file, places: places, name: "default"), Prompt(), Console(silent: true),
            sending: command.request(), transport: Resource(answer: answer))
        return try files()
    }

    private func files() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: place.path) }

    @Test("The content is in the file whole, for this user alone, in the place of what was there")
    func whole() async throws {
        let content = [UInt8](repeating: 7, count: 1_000_000)
        let called = Locked<[HTTPCall]>([])
        #expect(
            try await download { call in
                called.withLock { $0.append(call) }
                return HTTPReply(HTTPResponse(status: .ok), body: HTTPBody(content))
            } == ["statement.pdf"])
        let path = place.appending(path: "statement.pdf").path
        #expect(FileManager.default.contents(atPath: path) == Data(content))
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        let call = try #require(called.withLock { $0.first })
        #expect(
            call.request.url == "https://api.example/v1/statement" && call.request.headerFields[.authorization] == nil)
        #expect(try await download { _ in HTTPReply(HTTPResponse(status: .ok)) } == ["statement.pdf"])
        #expect(FileManager.default.contents(atPath: path) == Data())
    }

    @Test("A download that breaks off leaves nothing behind, and what was there stays")
    func breaksOff() async throws {
        let broken: @Sendable (HTTPCall) -> HTTPReply = { _ in
            HTTPReply(
                HTTPResponse(status: .ok),
                body: HTTPBody(length: 2000, isReplayable: false) {
                    let isFirst = Locked(true)
                    return {
                        let first = isFirst.withLock { first in
                            defer { first = false }
                            return first
                        }
                        guard first else { throw HTTPTransportError(.connectionClosed, "The connection ended.") }
                        return [UInt8](repeating: 1, count: 1000)
                    }
                })
        }
        let error = await #expect(throws: ResourceError.self) { try await download("statement.pdf", broken) }
        #expect(error?.domain == .url)
        #expect(try files().isEmpty)
        _ = try await download { _ in HTTPReply(HTTPResponse(status: .ok), body: HTTPBody("old")) }
        await #expect(throws: ResourceError.self) { try await download("statement.pdf", broken) }
        #expect(try files() == ["statement.pdf"])
        #expect(FileManager.default.contents(atPath: place.appending(path: "statement.pdf").path) == Data("old".utf8))
    }

    @Test("A refusal is not written: the command fails, and there is no file")
    func refused() async throws {
        await #expect(throws: (any Error).self) {
            try await download { _ in HTTPReply(HTTPResponse(status: .notFound), body: HTTPBody("no")) }
        }
        #expect(try files().isEmpty)
    }

    @Test("A place where nothing can be written is refused before anything is sent")
    func unwritable() async throws {
        let calls = Locked(0)
        let answer: @Sendable (HTTPCall) -> HTTPReply = { _ in
            calls.withLock { $0 += 1 }
            return HTTPReply(HTTPResponse(status: .ok))
        }
        try FileManager.default.createDirectory(
            at: place.appending(path: "directory"), withIntermediateDirectories: true)
        for name in ["directory", "none/statement.pdf"] {
            let error = await #expect(throws: CommandFailure.self) { try await download(name, answer) }
            #expect(error?.description.contains("Nothing was sent.") == true)
        }
        #expect(calls.withLock { $0 } == 0)
    }

    @Test("The bar says how much of it is done")
    func bar() {
        #expect(
            ProgressBar.line(0, of: 4 << 20) == "[\(String(repeating: "-", count: 30))] 0 %  0.0 of 4.0 MiB")
        #expect(ProgressBar.line(1 << 20, of: 4 << 20).hasPrefix("[#######-"))
        #expect(ProgressBar.line(1 << 20, of: 4 << 20).hasSuffix("] 25 %  1.0 of 4.0 MiB"))
        #expect(ProgressBar.line(9 << 20, of: 4 << 20).contains("100 %"))
        #expect(ProgressBar.line(0, of: 0).contains("100 %"))
    }
}
