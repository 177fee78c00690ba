#if os(Linux)
import AssentCore
import AssentServer
import Foundation
import TestSupport
import Testing

@testable import AssentCLI
@testable import AssentDemo

@Suite("A sign-in that leaves nothing behind and is killed while somebody is signed in")
struct StatelessKillTests {
    /// The example's file, whose app allows such sign-ins, with the greeting behind this port.
    private static func edited(_ file: String, _ port: Int) -> String {
        let types = "        grantTypes: [authorization_code, refresh_token, client_credentials]\n"
        let path = "      path: /greeting\n"
        return file.replacing(types, with: types + "        stateless: true\n")
            .replacing("accepts: [user, implicit]", with: "accepts: [user, implicit, stateless]")
            .replacing(
                path + "      upstream: http://127.0.0.1:9080\n",
                with: path + "      upstream: http://127.0.0.1:\(port)\n")
    }

    /// Every file below a directory, with its content.
    private static func files(_ directory: String) throws -> [String: Data] {
        var files: [String: Data] = [:]
        for name in try FileManager.default.subpathsOfDirectory(atPath: directory) {
            files[name] = FileManager.default.contents(atPath: "\(directory)/\(name)")
        }
        return files
    }

    @Test("32: Killed while its request is under way, it has written nothing, and the next process sees nobody")
    func killed() async throws {
        // As long as there is one, whoever asks for the greeting waits for it: nobody answers there.
        let silent = try Locked<ReservedPort?>(ReservedPort(listens: true))
        let bank = Locked<Int?>(nil)
        let (arrivals, arrived) = AsyncStream.makeStream(of: String.self)
        let relay = try await Relay.start(
            observer: { line, isReply in
                if !isReply { arrived.yield(line) }
            },
            to: { silent.withLock { $0?.port } ?? bank.withLock { $0 } })
        try await RequestKindsTests.run(editing: { Self.edited($0, relay.port) }) { newcomer in
            let (typist, home) = (newcomer.typist, newcomer.program.home)
            bank.withLock { $0 = typist.world.bank.port }
            let registered = try await newcomer.type("assent register --config app.yaml --token-file token.txt")
            try #require(registered.status == 0, "\(registered.errors)")
            let secrets = try await newcomer.type("assent vault list")
            #expect(secrets.status == 0, "\(secrets.errors)")
            let (before, names) = (try Self.files(home), try newcomer.stored)

            let note = typist.program.home + "/process"
            let running = try newcomer.program.start(
                ["login", "--config", home + "/app.yaml", "--stateless", "--then", "GET", "/greeting"], typing: true,
                under: ["/bin/sh", "-c", "echo $$ >'\(note)'; exec \"$@\"", "sh"])
            let ending = Task {
                let result = await running.result()
                arrived.finish()
                return result
            }
            try running.type(newcomer.signIn)
            // Its request has come through the gateway, which lets nobody there who is not signed in.
            let line = await arrivals.first { _ in true }
            let written = try String(contentsOfFile: note, encoding: .utf8)
            if line != nil, let id = Int32(written.trimmingCharacters(in: .whitespacesAndNewlines)) {
                _ = kill(id, SIGKILL)
            }
            let result = await ending.value
            #expect(line?.contains("/greeting") == true && result.isKilled, "\(result)")
            silent.withLock { $0 = nil }

            #expect(try newcomer.stored == names)
            let after = try Self.files(home)
            #expect(Set(after.keys) == Set(before.keys))
            let changed = before.filter { after[$0.key] != $0.value }.keys.sorted()
            #expect(changed == [])
            let status = try await newcomer.type("assent status")
            #expect(status.status == 1, "\(status.output)")
            let refused = try await newcomer.type("assent request GET /greeting")
            #expect(refused.status == 1 && refused.errors.contains("9010"), "\(refused.errors)")
            let secretsAfter = try await newcomer.type("assent vault list")
            #expect(secretsAfter.output == secrets.output, "\(secretsAfter.output)")

            // The installation is as it was.
            let info = try await newcomer.type("assent request --as device GET /app-info")
            #expect(try info.status == 0 && JSONValue.parse(info.output)["name"] == "Bank app", "\(info.errors)")
        }
        try await relay.stop()
    }
}
#endif
