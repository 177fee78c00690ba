import AssentCore
import AssentJOSE
import Foundation
import Testing

/// A clock that always shows the same time.
struct FixedClock: WallClock {
    var now: Date
    init(_ seconds: TimeInterval) { now = Date(timeIntervalSince1970: seconds) }
    func sleep(until deadline: Date) async throws {}
}

extension JSONObject {
    init(header members: (String, JSONValue)...) {
        self.init(members.map { Member(name: $0.0, value: $0.1) })
    }
}

/// A compact text with its parts decoded, to be tampered with.
struct CompactParts {
    var parts: [[UInt8]]

    init(_ text: String) throws {
        parts = try text.split(separator: ".", omittingEmptySubsequences: false).map {
            try #require(Base64URL.decode($0))
        }
    }

    var text: String { parts.map { Base64URL.encode($0) }.joined(separator: ".") }

    func withHeader(_ edit: (inout JSONObject) -> Void) throws -> String {
        var header = try #require(JSONValue.parse(parts[0]).object)
        edit(&header)
        var copy = self
        copy.parts[0] = JSONValue.object(header).serializedBytes()
        return copy.text
    }
}

/// Signs a header that `JWS.sign` would not.
func signRaw(header: String, payload: String = "payload", with key: any SigningKey) async throws -> String {
    let input = Base64URL.encode(Array(header.utf8)) + "." + Base64URL.encode(Array(payload.utf8))
    return input + "." + Base64URL.encode(try await key.signature(for: Array(input.utf8)))
}

/// Keys that are expensive to make, once for all tests.
enum TestKeys {
    static let rsa = Result { try SoftwareSigningKey.generate(.rs256, rsaBits: 2048) }
    static let transport = Result { try SoftwareTransportKey(privateKey: rsa.get().privateKey) }

    static func key(_ algorithm: SignatureAlgorithm) throws -> SoftwareSigningKey {
        switch algorithm {
        case .rs256, .ps256: try SoftwareSigningKey(algorithm: algorithm, privateKey: rsa.get().privateKey)
        default: try SoftwareSigningKey.generate(algorithm)
        }
    }

    static let all: [SignatureAlgorithm] = [.es256, .es384, .es512, .rs256, .ps256, .edDSA]
}
