import AssentConfiguration
import AssentCore
import AssentEngine
import Foundation
import Testing

@testable import AssentServer

@Suite("Files with secrets that the operator names")
struct PrivateFileTests {
    @Test("A text in another encoding, or behind a byte order mark, is refused: it would be another secret")
    func encodings() throws {
        let path = NSTemporaryDirectory() + "assent-secret-" + SystemRandom().uuid()
        defer { try? FileManager.default.removeItem(atPath: path) }
        func text(_ bytes: [UInt8]) throws -> String {
            try? FileManager.default.removeItem(atPath: path)
            try PrivateFile.create(path, bytes)
            return try PrivateFile.text(path)
        }
        #expect(try text(Array("schlüssel\r\n".utf8)) == "schlüssel\r\n")
        #expect(try text([]) == "")
        let others: [[UInt8]] = [[0xEF, 0xBB, 0xBF, 0x78, 0x0A], [0xFF, 0xFE, 0x78, 0x00], [0x78, 0xFC]]
        for bytes in others {
            let error = #expect(throws: ConfigurationError.self) { try text(bytes) }
            #expect(error?.file == path, "\(bytes)")
        }
    }

    @Test("A user who may not read a file is told as whom to run the server, and how to give the file to that user")
    func otherUser() {
        for number in [EACCES, EPERM] {
            let text = PrivateFile.obstacle(number)
            #expect(text.hasPrefix(String(cString: strerror(number))), "\(text)")
            #expect(text.contains("as the user of the server") && text.contains("chown"), "\(text)")
        }
        #expect(PrivateFile.obstacle(ENOENT) == String(cString: strerror(ENOENT)))
    }

    @Test("A client's secret is what stands in its file without the line's end, and a marked one is refused")
    func clientSecret() throws {
        let directory = try ServerFixture.makeDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let secret = String(repeating: "0123456789abcdef", count: 2)
        let path = directory + "/web.secret"
        let yaml = FixtureConfiguration.yaml(upstream: 9080, refusing: 9081)
            .replacing(/secretHash: [A-Za-z0-9_-]+/, with: "secretFile: web.secret")
        func kinds() throws -> [OAuthClient.Kind] {
            try ServerConfiguration.parse(yaml, file: directory + "/assent.yaml").realms.flatMap(\.clients).map(\.kind)
        }
        let hash = OAuthClient.hash(ofSecret: Secret(secret))
        try PrivateFile.create(path, Array((secret + "\r\n").utf8))
        #expect(try kinds().contains(.confidential(secretHash: hash)))
        try FileManager.default.removeItem(atPath: path)
        try PrivateFile.create(path, Array(("\u{FEFF}" + secret).utf8))
        let error = #expect(throws: ConfigurationError.self) { try kinds() }
        #expect(error?.file == path && error?.message.contains("byte order mark") == true)
    }
}
