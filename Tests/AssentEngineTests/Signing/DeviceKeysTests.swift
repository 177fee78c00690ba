import AssentCore
import AssentJOSE
import AssentSigningProtocol
import Testing

@testable import AssentEngine

@Suite("Keys of devices that were read lately")
struct DeviceKeysTests {
    @Test("A text is the same key each time, another text another key, and what is not a key is refused each time")
    func key() throws {
        let keys = DeviceKeys()
        let made = try (0..<3).map { _ in try ProtocolKey(SoftwareSigningKey.generate(.es256)) }
        for _ in 0..<2 {
            for key in made { #expect(try keys.key(key.json.serialized()) == key) }
            #expect(throws: SigningProtocolError.self) { try keys.key("{}") }
        }
    }
}
