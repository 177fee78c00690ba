import AssentCore
import AssentJOSE
import AssentTesting
import AssentTrust
import AssentVault
import Foundation
import HTTPTypes
import Logging
import Testing

@testable import AssentServer

@Suite("34: Trust files that assent serve serves")
struct TrustFileRouteTests {
    /// A server, and what an operator puts into the directory whose versions it serves.
    private struct Scene {
        let fixture: ServerFixture
        let directory: String
        let keys: [SoftwareSigningKey]
        let stranger: SoftwareSigningKey

        static func run(_ body: (Scene) async throws -> Void) async throws {
            let directory = try ServerFixture.makeDirectory()
            defer { try? FileManager.default.removeItem(atPath: directory) }
            let versions = directory + "/versions"
            try FileManager.default.createDirectory(atPath: versions, withIntermediateDirectories: false)
            let keys = try (1...2).map { _ in try SoftwareSigningKey.generate(.es256) }
            let stranger = try SoftwareSigningKey.generate(.es256)
            try await ServerFixture.run(editing: { "trustFiles: {bank: \(versions)}\n" + $0 }) { fixture in
                try await body(Scene(fixture: fixture, directory: versions, keys: keys, stranger: stranger))
            }
        }

        var source: String { fixture.server("/trust/bank") }

        /// A version whose pins have these numbers.
        func file(_ version: Int, pins: [UInt8] = [1, 2], by key: SoftwareSigningKey? = nil) async throws -> String {
            let now = fixture.clock.epochSeconds
            let pinned: [JSONValue] = pins.map { number in
                [
                    "spki": .string(Base64URL.encode([UInt8](repeating: number, count: 32))),
                    "notAfter": .integer(now + 86_400),
                ]
            }
            let jwks = try keys.map { try JWK(publicKeyInfo: $0.publicKeyInfo).json }
            let members: JSONObject = [
                "v": 1, "aud": "bank-app/linux/test", "version": .integer(version), "iat": .integer(now),
                "keys": .array(jwks),
                "hosts": [["host": "api.bank.example", "pins": .array(pinned), "sends": ["user"]]],
                "issuer": "https://am.bank.example/am/oauth2/alpha",
                "identity": .string(Base64URL.encode([UInt8](repeating: 9, count: 32))), "config": .array(jwks),
                "controls": ["debugger": "off", "rooted": "off", "preload": "off"], "source": [.string(source)],
            ]
            let signer = try key ?? #require(keys.first)
            let header: JSONObject = [
                "typ": "assent-trust+jwt", "kid": .string(try JWK(publicKeyInfo: signer.publicKeyInfo).thumbprint),
            ]
            return try await JWS.sign(JSONValue.object(members).serializedBytes(), header: header, with: signer)
        }

        func put(_ text: String, as name: String) throws {
            try Data(text.utf8).write(to: URL(fileURLWithPath: directory + "/" + name))
        }

        /// Lets the server look again.
        func wait() { fixture.clock.advance(by: TrustFileShelf.interval) }

        func status(_ path: String, _ method: String = "GET") async throws -> Int {
            try await fixture.send(method, source + path).status
        }

        /// An app that is shipped with this file, whose source is this server.
        func app(_ shipped: String) throws -> (keeper: TrustKeeper, pins: Locked<[String: PinRequirement]>) {
            let (fixture, pins) = (fixture, Locked<[String: PinRequirement]>([:]))
            let source = InMemoryTransport { exchange in
                let answer = try await fixture.send("GET", fixture.root(exchange.request.path ?? ""))
                return HTTPReply(HTTPResponse(status: .init(code: answer.status)), body: HTTPBody(answer.text))
            }
            let keeper = TrustKeeper(
                shipped: try TrustFile(shipped: shipped),
                in: .init(
                    store: MemorySecretStore(clock: fixture.clock), network: source, clock: fixture.clock,
                    logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
            ) { new in pins.withLock { $0 = new } }
            return (keeper, pins)
        }
    }

    @Test(
        "A version that is put there is served without a restart, with a tag, and with the tag there is nothing to send"
    )
    func served() async throws {
        try await Scene.run { scene in
            #expect(try await scene.status("/1") == 404)
            let file = try await scene.file(1)
            try scene.put(file, as: "1")
            #expect(try await scene.status("/1") == 404, "it is looked again after five seconds only")
            scene.wait()
            let answer = try await scene.fixture.send("GET", scene.source + "/1")
            #expect(answer.status == 200 && answer.text == file && answer["content-type"] == "application/jwt")
            let tag = try #require(answer["etag"])
            for value in [tag, "\"x\", \(tag)", "W/\(tag)", "*"] {
                let same = try await scene.fixture.send("GET", scene.source + "/1", [("If-None-Match", value)])
                #expect(same.status == 304 && same.bytes.isEmpty && same["etag"] == tag, "\(value)")
            }
            let other = try await scene.fixture.send("GET", scene.source + "/1", [("If-None-Match", "\"x\"")])
            #expect(other.status == 200)
            #expect(try await scene.status("/1", "POST") == 405)
            // It is taken away again.
            try FileManager.default.removeItem(atPath: scene.directory + "/1")
            scene.wait()
            #expect(try await scene.status("/1") == 404)
        }
    }

    @Test("An app gets its pins changed by it, and takes nothing that its own chain does not lead to")
    func updated() async throws {
        try await Scene.run { scene in
            let shipped = try await scene.file(1)
            try scene.put(shipped, as: "1")
            try scene.put(try await scene.file(2, pins: [2, 3]), as: "2")
            // Version 3 is missing, so nobody comes to 4.
            try scene.put(try await scene.file(4, pins: [4, 5]), as: "4")
            scene.wait()
            let app = try scene.app(shipped)
            #expect(await app.keeper.ask() == 2)
            #expect(app.pins.withLock { $0 } == ["api.bank.example": try pins(2, 3)])
            // One that a stranger has signed is served, and refused by the app.
            try scene.put(try await scene.file(3, pins: [8, 9], by: scene.stranger), as: "3")
            scene.fixture.clock.advance(by: 3600)
            #expect(await app.keeper.ask() == 2)
            try scene.put(try await scene.file(3, pins: [3, 4]), as: "3")
            try scene.put(try await scene.file(4, pins: [4, 5]), as: "4")
            scene.fixture.clock.advance(by: 3600)
            #expect(await app.keeper.ask() == 4)
            #expect(app.pins.withLock { $0 } == ["api.bank.example": try pins(4, 5)])
        }
    }

    private func pins(_ numbers: UInt8...) throws -> PinRequirement {
        .pins(try numbers.map { try Pin(sha256: [UInt8](repeating: $0, count: 32)) })
    }

    @Test("A file that is cut off, too large, under another number, or not there for everybody is not served")
    func notServed() async throws {
        try await Scene.run { scene in
            let file = try await scene.file(1)
            let outside = (scene.directory as NSString).deletingLastPathComponent + "/outside"
            try Data(file.utf8).write(to: URL(fileURLWithPath: outside))
            let path = scene.directory + "/1"
            func put(_ bytes: Data) throws { try bytes.write(to: URL(fileURLWithPath: path)) }
            let attempts: [(String, () throws -> Void)] = [
                ("cut off", { try put(Data(file.utf8.prefix(file.utf8.count / 2))) }),
                ("empty", { try put(Data()) }),
                ("huge", { try put(Data(file.utf8) + Data(count: 64 << 10)) }),
                ("white space", { try put(Data((file + "\n").utf8)) }),
                (
                    "a link out",
                    { try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: outside) }
                ),
                (
                    "a link up",
                    {
                        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "../outside")
                    }
                ),
                (
                    "a directory",
                    {
                        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
                    }
                ),
                ("a pipe", { #expect(mkfifo(path, 0o600) == 0) }),
            ]
            for (name, attempt) in attempts {
                try? FileManager.default.removeItem(atPath: path)
                try attempt()
                scene.wait()
                #expect(try await scene.status("/1") == 404, "\(name)")
            }
            try? FileManager.default.removeItem(atPath: path)
            try scene.put(file, as: "2")
            // The controls: the file itself, and a link within the directory, as Kubernetes makes it.
            try scene.put(file, as: "kept")
            try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "kept")
            scene.wait()
            #expect(try await scene.status("/2") == 404)
            #expect(try await scene.status("/1") == 200)
            let log = String(decoding: scene.fixture.logged, as: UTF8.self)
            for why in [
                "1 is not a trust file, or not all of one", "1 has more than 64 KiB", "1 is not a plain file",
                "1 is a link to what is not in the directory", "2 has version 1: a file's name is its version",
            ] { #expect(log.contains(why), "\(why)") }
        }
    }

    @Test("What a client writes is matched and never opened")
    func traversal() async throws {
        try await Scene.run { scene in
            let file = try await scene.file(1)
            for name in ["1", "01", "secret"] { try scene.put(file, as: name) }
            scene.wait()
            for path in [
                "/01", "/+1", "/1/", "/1/1", "//1", "/%31", "/1%00", "/secret", "/..%2fversions%2f1", "/../bank/01",
                "/0", "/-1", "/2147483649", "/99999999999999999999", "/１", "", "/",
            ] {
                let answer = try await scene.fixture.raw(
                    "GET /am/trust/bank\(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
                    toGateway: false)
                #expect(!answer.contains(" 200 ") && !answer.contains(file), "\(path)")
            }
            for name in ["Bank", "bank%2f", "other", "..", "bank/..", "."] {
                let answer = try await scene.fixture.raw(
                    "GET /am/trust/\(name)/1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
                    toGateway: false)
                #expect(!answer.contains(" 200 "), "\(name)")
            }
            let answer = try await scene.fixture.raw(
                "GET /am/trust/bank/1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", toGateway: false)
            #expect(answer.contains(" 200 ") && answer.contains(file))
        }
    }

    @Test(
        "A name is one segment of a path, which nobody makes shorter",
        arguments: [
            ("bank", true), ("a.b-c_d", true), ("..a", true), (".", false), ("..", false), ("", false), ("a/b", false),
            ("a%2fb", false), ("é", false), (String(repeating: "a", count: 65), false),
        ])
    func names(name: String, isName: Bool) { #expect(TrustFileRoute.isName(name) == isName) }

    @Test("When the directory is away, what was read last is served")
    func away() async throws {
        try await Scene.run { scene in
            try scene.put(try await scene.file(1), as: "1")
            scene.wait()
            #expect(try await scene.status("/1") == 200)
            try FileManager.default.moveItem(atPath: scene.directory, toPath: scene.directory + "-away")
            scene.wait()
            #expect(try await scene.status("/1") == 200)
            try FileManager.default.moveItem(atPath: scene.directory + "-away", toPath: scene.directory)
            try FileManager.default.removeItem(atPath: scene.directory + "/1")
            scene.wait()
            #expect(try await scene.status("/1") == 404)
        }
    }

    @Test("Of too many versions, or too many bytes, the latest are served")
    func bounded() throws {
        let directory = try ServerFixture.makeDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        func put(_ version: Int, padding: Int) throws {
            let payload: JSONValue = [
                "version": .integer(version), "p": .string(String(repeating: "p", count: padding)),
            ]
            let header = Base64URL.encode(Array(#"{"alg":"ES256","typ":"assent-trust+jwt","kid":"k"}"#.utf8))
            let text = "\(header).\(Base64URL.encode(payload.serializedBytes())).\(Base64URL.encode([0]))"
            try Data(text.utf8).write(to: URL(fileURLWithPath: "\(directory)/\(version)"))
        }
        for version in 1...TrustFileDirectory.maximumVersions + 2 { try put(version, padding: 1) }
        let many = try TrustFileDirectory(directory)
        #expect(many.versions.count == TrustFileDirectory.maximumVersions)
        #expect(many.versions[3] != nil && many.versions[2] == nil && many.faults.count == 1)
        for version in 1...100 { try put(version + 2000, padding: 45_000) }
        let large = try TrustFileDirectory(directory)
        #expect(large.versions.values.reduce(0) { $0 + $1.bytes.count } <= TrustFileDirectory.maximumBytes)
        #expect(large.versions[2100] != nil && large.versions[2001] == nil && !large.faults.isEmpty)
        // What is known and has not changed is taken as it is.
        #expect(try TrustFileDirectory(directory, knowing: large.versions).versions == large.versions)
        for name in 0...TrustFileDirectory.maximumNames {
            try Data().write(to: URL(fileURLWithPath: "\(directory)/x\(name)"))
        }
        #expect(throws: TrustFileDirectory.Unreadable.self) { try TrustFileDirectory(directory) }
    }
}
