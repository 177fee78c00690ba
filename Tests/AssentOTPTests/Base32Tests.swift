import AssentCore
import AssentOTP
import Testing

@Suite("Base 32")
struct Base32Tests {
    @Test(
        "RFC 4648 §10",
        arguments: [
            ("", ""), ("f", "MY======"), ("fo", "MZXQ===="), ("foo", "MZXW6==="), ("foob", "MZXW6YQ="),
            ("fooba", "MZXW6YTB"), ("foobar", "MZXW6YTBOI======"),
        ])
    func vectors(plain: String, text: String) {
        let unpadded = String(text.prefix { $0 != "=" })
        #expect(Base32.encode(Array(plain.utf8), padded: true) == text)
        #expect(Base32.encode(Array(plain.utf8)) == unpadded)
        for form in [text, unpadded, text.lowercased()] {
            #expect(Base32.decode(form) == Array(plain.utf8))
        }
    }

    @Test("Random bytes of every length come back", arguments: 0..<70)
    func roundTrip(count: Int) {
        let bytes = SystemRandom().bytes(count)
        #expect(Base32.decode(Base32.encode(bytes)) == bytes)
        #expect(Base32.decode(Base32.encode(bytes, padded: true)) == bytes)
        #expect(Base32.decodeLeniently(Base32.encode(bytes) + "===") == bytes)
    }

    @Test(
        "What is not base 32 is refused",
        arguments: [
            "M", "MZX", "MZXW6Y", "MZ======", "MY=====", "MY=======", "========", "MZXW6YTB========", "MZ XQ",
            "MZXW6YT0", "MZXW6YT1", "MZXW6YT8", "M=======", "MY==XX==", "MZXW6YTB=", "ΜZXW6YTB", "MZXW-YTB",
        ])
    func refused(text: String) {
        #expect(Base32.decode(text) == nil)
    }

    @Test("Each bytes have one unpadded text in upper case: spare bits must be zero")
    func canonical() {
        #expect(Base32.decode("MY") == Array("f".utf8))
        #expect(Base32.decode("MZ") == nil)
        #expect(Base32.decodeLeniently("MZ") == Array("f".utf8))
        #expect(Base32.decodeLeniently("MZ=X") == nil)
        #expect(Base32.decodeLeniently("M1") == nil)
    }
}
