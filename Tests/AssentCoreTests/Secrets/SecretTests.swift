import AssentCore
import Crypto
import Testing

@Suite("Secret")
struct SecretTests {
    private struct Holder {
        let secret: Secret
        let optional: Secret?
        let list: [Secret]
        let map: [String: Secret]
    }

    private enum Wrapped {
        case secret(Secret)
    }

    private func everyText(of value: Any) -> [String] {
        var dumped = ""
        dump(value, to: &dumped)
        var children = ""
        func walk(_ mirror: Mirror) {
            for child in mirror.children {
                children += "\(child.label ?? "") \(child.value) "
                walk(Mirror(reflecting: child.value))
            }
        }
        walk(Mirror(reflecting: value))
        var printed = ""
        print(value, to: &printed)
        debugPrint(value, to: &printed)
        return ["\(value)", String(describing: value), String(reflecting: value), dumped, children, printed]
    }

    @Test("No way to print shows it, alone or inside of something")
    func redaction() {
        let text = "hunter2-hunter2"
        let secret = Secret(text)
        let session = Session(token: secret, successURL: "/", realm: "/alpha")
        let values: [Any] = [
            secret, Optional(secret) as Any, [secret], ["k": secret], (secret, 1), Wrapped.secret(secret),
            Holder(secret: secret, optional: secret, list: [secret], map: ["k": secret]), session,
            StoredSecret(value: secret, version: 1), Result<Secret, WireError>.success(secret),
        ]
        let forms = [text, Hex.encode(Array(text.utf8)), Base64URL.encode(Array(text.utf8)), "104, 117, 110, 116"]
        for value in values {
            for shown in everyText(of: value) {
                for form in forms { #expect(!shown.contains(form)) }
            }
        }
        #expect("\(secret)" == "«secret»")
        #expect("\(Secret(""))" == "«secret»")
        #expect(Mirror(reflecting: secret).children.isEmpty)
    }

    @Test("What was put in comes out")
    func roundTrip() {
        #expect(Secret("päss").reveal() == "päss")
        #expect(Secret(bytes: [0, 255, 1]).revealBytes() == [0, 255, 1])
        #expect(Secret(bytes: [0xFF]).reveal() == "\u{FFFD}")
        #expect(Secret("päss").count == 5)
        #expect(Secret("").isEmpty)
        #expect(Secret(bytes: []).revealBytes() == [])
        #expect(!Secret("x").isEmpty)
        let key = SymmetricKey(size: .bits256)
        #expect(Secret(key).symmetricKey == key)
        #expect(Secret(bytes: [1, 2]).withUnsafeBytes { Array($0) } == [1, 2])
    }

    @Test(
        "Two secrets are equal when their bytes are",
        arguments: [
            ("a", "a", true), ("a", "b", false), ("", "", true), ("", "a", false), ("a", "aa", false),
            ("é", "e\u{301}", false),
        ])
    func equality(one: String, other: String, expected: Bool) {
        #expect((Secret(one) == Secret(other)) == expected)
        #expect(ConstantTime.equal(one, other) == expected)
        #expect(ConstantTime.equal(Array(one.utf8), Array(other.utf8)) == expected)
    }

    @Test("A copy is told from another secret of the same bytes")
    func copies() {
        let secret = Secret("a token")
        let copy = secret
        #expect(copy.isCopy(of: secret))
        #expect(!Secret("a token").isCopy(of: secret))
        #expect(!Secret("a tokens").isCopy(of: secret))
    }

    @Test("Every single bit counts")
    func bits() {
        let bytes = Array("a secret of some length".utf8)
        for index in bytes.indices {
            for bit in 0..<8 {
                var other = bytes
                other[index] ^= 1 << UInt8(bit)
                #expect(Secret(bytes: bytes) != Secret(bytes: other))
                #expect(!ConstantTime.equal(bytes, other))
            }
        }
    }
}
