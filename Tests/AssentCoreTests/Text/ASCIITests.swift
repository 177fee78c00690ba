import AssentCore
import Testing

@Suite("ASCII classes")
struct ASCIITests {
    private func members(_ isMember: (UInt8) -> Bool) -> String {
        String(decoding: (UInt8.min...UInt8.max).filter(isMember), as: UTF8.self)
    }

    @Test("Each class has exactly its bytes, and none above 0x7F")
    func classes() {
        let upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", lower = upper.lowercased(), digits = "0123456789"
        #expect(members(\.isASCIIDigit) == digits)
        #expect(members(\.isASCIILetter) == upper + lower)
        #expect(members(\.isASCIIAlphanumeric) == digits + upper + lower)
        #expect(members(\.isURIUnreserved) == "-." + digits + upper + "_" + lower + "~")
        #expect(members(\.isASCIIVisible).count == 94 && members(\.isASCIIPrintable).count == 95)
        #expect(members(\.isASCIIPrintable) == " " + members(\.isASCIIVisible))
        #expect(members(\.isHTTPToken) == "!#$%&'*+-." + digits + upper + "^_`" + lower + "|~")
        #expect(members { $0.hexDigitValue != nil } == digits + "ABCDEFabcdef")
    }

    @Test("A hexadecimal digit has its value in both cases")
    func hexDigits() {
        #expect("0123456789abcdef".utf8.map(\.hexDigitValue) == (0..<16).map { UInt8($0) })
        #expect("ABCDEF".utf8.map(\.hexDigitValue) == (10..<16).map { UInt8($0) })
    }
}
