import AssentCore
import AssentOTP
import Foundation
import StoreTesting
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("What neither the log nor the disk may tell")
struct SecrecyTests {
    /// Finds texts in bytes: all that begin with the same eight bytes are looked at, wherever they stand.
    struct Search {
        private var needles: [UInt64: [(name: String, bytes: [UInt8])]] = [:]

        mutating func add(_ name: String, _ bytes: [UInt8]) {
            guard bytes.count >= 8 else { return }
            needles[Self.key(bytes[0..<8]), default: []].append((name, bytes))
        }

        /// A secret in every form in which it could be written, and every piece of its text.
        mutating func add(secret: Secret, _ name: String, pieces: Bool) {
            let bytes = secret.revealBytes()
            add(name, bytes)
            add(name + " in base64", Array(Data(bytes).base64EncodedString().utf8))
            add(name + " in base64url", Array(Base64URL.encode(bytes).utf8))
            add(name + " in hex", Array(Hex.encode(bytes).utf8))
            add(name + " in upper hex", Array(Hex.encode(bytes).uppercased().utf8))
            add(name + " percent-encoded", bytes.flatMap { Array("%\(Hex.encode([$0]).uppercased())".utf8) })
            guard pieces, bytes.count > 12 else { return }
            for start in 0...(bytes.count - 12) { add("a piece of " + name, Array(bytes[start..<(start + 12)])) }
        }

        func found(in content: [UInt8]) -> Set<String> {
            var found: Set<String> = []
            var key: UInt64 = 0
            for (index, byte) in content.enumerated() {
                key = key << 8 | UInt64(byte)
                guard index >= 7, let candidates = needles[key] else { continue }
                for (name, bytes) in candidates where content[(index - 7)...].starts(with: bytes) { found.insert(name) }
            }
            return found
        }

        private static func key(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
    }

    private func disk(_ fixture: ServerFixture) throws -> [UInt8] {
        let directory = URL(fileURLWithPath: fixture.directory + "/data")
        return try FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil)
            .filter { $0.lastPathComponent.hasPrefix("assent.sqlite") }
            .flatMap { [UInt8](try Data(contentsOf: $0)) }
    }

    @Test(
        "After a whole story with its failures, no secret is in the log at trace, in the database or in its WAL",
        .enabled(if: !TestDatabase.isPostgreSQL, "it looks into a SQLite file"))
    func story() async throws {
        try await ServerFixture.run { fixture in
            var search = Search()
            var codes: [String] = []
            let account = try fixture.account("ana")
            let session = try await fixture.signIn(journey: "Login")
            codes.append(try fixture.currentCode("ana"))
            let tokens = try await fixture.tokens(session: session)
            let bearer = ServerFixture.bearer(tokens.access)
            let id = try await fixture.completedTransaction("/transfers", session: session, credentials: bearer)
            codes.append(try fixture.currentCode("ana"))
            let fields = ServerFixture.jsonFields + bearer
            for _ in 0..<2 {
                _ = try await fixture.send(
                    "POST", fixture.gateway("/transfers?_txid=\(id)"), fields, text: FixtureBody.transfer)
            }
            fixture.upstream.answer(with: TestUpstream.closing)
            _ = try await fixture.send("GET", fixture.gateway("/accounts"), bearer)
            let refreshed = try await fixture.refresh(tokens.refresh)
            let wrong = try await fixture.runJourney([("authIndexType", "service"), ("authIndexValue", "Quick")]) {
                ["NameCallback": "ana", "PasswordCallback": "a-wrong-password-of-ana"][$0]
            }
            #expect(wrong.status == 401)
            _ = try await fixture.send("GET", fixture.oauth("userinfo"), ServerFixture.bearer(tokens.access + "x"))
            _ = try await fixture.send(
                "POST", fixture.json("sessions?_action=validate&tokenId=\(session)"))
            _ = try await fixture.send(
                "POST", fixture.json("authenticate"), [("Content-Type", "text/plain")], text: session)
            _ = try await fixture.send("POST", fixture.json("sessions?_action=logout"), ServerFixture.session(session))

            search.add(secret: account.password, "the password", pieces: true)
            search.add(secret: Secret("a-wrong-password-of-ana"), "a wrong password", pieces: true)
            search.add(secret: account.totpSeed, "the seed", pieces: false)
            search.add(
                secret: Secret(Base32.encode(account.totpSeed.revealBytes())), "the seed in base32", pieces: true)
            let texts = [
                ("the session's token", session), ("the code", tokens.code), ("the verifier", tokens.verifier),
                ("the refresh token", tokens.refresh),
                ("the next refresh token", refreshed.json["refresh_token"]?.string ?? ""),
            ]
            for (name, text) in texts {
                #expect(!text.isEmpty)
                search.add(secret: Secret(text), name, pieces: true)
                if let bytes = Base64URL.decode(text) {
                    search.add(secret: Secret(bytes: bytes), name + ", raw", pieces: false)
                }
            }
            // What stands before the signature's dot is the same in all tokens of a key, and no secret.
            let access = [tokens.access, refreshed.json["access_token"]?.string ?? "", tokens.id]
            for token in access {
                let parts = token.split(separator: ".")
                #expect(parts.count == 3)
                search.add(secret: Secret(String(parts.last ?? "")), "a token's signature", pieces: true)
                search.add(secret: Secret(token), "a token", pieces: false)
            }

            let written = try disk(fixture)
            let logged = fixture.logged
            #expect(written.count > 50_000 && logged.count > 100)
            #expect(search.found(in: written) == [])
            #expect(search.found(in: logged) == [])
            let text = String(decoding: logged, as: UTF8.self)
            #expect(text.contains("Starting") && !text.contains("secretHash"))
            #expect(!text.contains(Base64URL.encode(SHA2.sha256(FixtureConfiguration.webSecret.utf8))))
            for code in codes {
                #expect(String(decoding: logged, as: UTF8.self).firstMatch(of: try Regex("\\b\(code)\\b")) == nil)
                #expect(!isAlone(code, in: written))
            }

            let planted = AuditRecord(
                AuditEvent(rawValue: "x"), .success, detail: ["url": .string("/?t=" + tokens.refresh.prefix(20))])
            try await AuditLog(fixture.server.context).write(planted)
            #expect(search.found(in: try disk(fixture)) == ["a piece of the refresh token"])
            fixture.plantInLog(Hex.encode(account.password.revealBytes()))
            #expect(search.found(in: fixture.logged).contains("the password in hex"))
            #expect(isAlone("123456", in: Array("code=123456;".utf8)))
        }
    }

    /// Whether a code stands there with nothing around it that would make it a part of something else, as a number or a
    /// UUID.
    private func isAlone(_ code: String, in content: [UInt8]) -> Bool {
        let needle = Array(code.utf8)
        func isPart(_ byte: UInt8) -> Bool {
            let scalar = Unicode.Scalar(byte)
            return scalar.properties.isASCIIHexDigit || scalar == "-"
        }
        for (index, byte) in content.enumerated() where byte == needle.first {
            guard content[index...].starts(with: needle) else { continue }
            let end = index + needle.count
            if index > 0, isPart(content[index - 1]) { continue }
            if end < content.count, isPart(content[end]) { continue }
            return true
        }
        return false
    }
}
