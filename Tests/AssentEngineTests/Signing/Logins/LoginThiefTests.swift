import AssentCore
import AssentStore
import AssentTesting
import Foundation
import StoreTesting
import Testing

@testable import AssentEngine

/// Somebody who has copied the database, without the master key.
@Suite("A thief with the database after logins", .enabled(if: !TestDatabase.isPostgreSQL, "it looks into a file"))
struct LoginThiefTests {
    /// The tokens among all that stands in a database's files: what the server would look up and find.
    private static func tokens(
        beside path: String, in table: SQL, of database: any SQLDatabase
    ) async throws -> [Secret] {
        let rows = try await database.run(.read("SELECT id FROM \(table)"))
        let known = Set(try rows.map { try $0.text("id") })
        let directory = URL(fileURLWithPath: path).deletingLastPathComponent()
        let files = try FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil)
        var found: Set<String> = []
        let length = SystemRandom().token().utf8.count
        for file in files {
            let texts = try [UInt8](Data(contentsOf: file)).split { byte in
                !(Character(UnicodeScalar(byte)).isLetter && byte < 0x80) && !(0x30...0x39).contains(byte)
                    && byte != 0x2D && byte != 0x5F
            }
            for text in texts where text.count >= length {
                for start in text.startIndex...(text.endIndex - length) {
                    let piece = String(decoding: text[start..<(start + length)], as: UTF8.self)
                    if known.contains(TokenHash.of(Secret(piece))) { found.insert(piece) }
                }
            }
        }
        return found.map { Secret($0) }
    }

    @Test("30: After logins by PIN and implicit ones it has no session and no refresh token that anybody would accept")
    func logins() async throws {
        let world = try await LoginWorld()
        let byPIN = try await world.logIn(try await world.typed(), scope: "openid accounts offline_access")
        let implicit = try await world.logIn(try world.implicit())
        #expect(byPIN.refreshToken == nil && implicit.refreshToken == nil && implicit.session == nil)
        #expect(try await world.count("refresh_tokens") == 0)
        let path = world.signing.base.path
        #expect(try await Self.tokens(beside: path, in: "sessions", of: world.database).isEmpty)
        // What was typed is taken: the evaluation and its confirmation are stored, and sign nobody in again.
        #expect(try await world.count("signing_confirms", "taken_by IS NULL") == 0)
    }

    @Test("30: A planted refresh token is found, and is used")
    func control() async throws {
        let fixture = try await ProviderFixture()
        let tokens = try await fixture.tokens()
        let path = fixture.url.appending(path: "test.sqlite").path
        #expect(try await Self.tokens(beside: path, in: "refresh_tokens", of: fixture.database).isEmpty)
        let planted = try #require(tokens.refreshToken)
        _ = try await fixture.database.run(
            SQLStatement(
                "INSERT INTO attempts (counter, window_start, count) VALUES (\("leak:\(planted.reveal())"), 0, 0)"))
        let found = try await Self.tokens(beside: path, in: "refresh_tokens", of: fixture.database)
        #expect(found == [planted])
        #expect(try await fixture.refresh(found.first).refreshToken != nil)
    }
}
