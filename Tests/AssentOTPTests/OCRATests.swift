import AssentCore
import AssentOTP
import Foundation
import Testing

@Suite("OCRA")
struct OCRATests {
    static let key20 = "12345678901234567890"
    static let key32 = "12345678901234567890123456789012"
    static let key64 = "1234567890123456789012345678901234567890123456789012345678901234"
    // Time step 0x132d0b6 of one minute.
    static let time = Date(timeIntervalSince1970: 0x132D0B6 * 60)

    struct Series: Sendable, CustomTestStringConvertible {
        let suite: String
        let key: String
        let rows: [(question: [String], counter: UInt64?, code: String)]
        var pin = false
        var testDescription: String { "\(suite) \(rows.first?.question ?? [])" }
    }

    private static func repeated(_ codes: [String], counting: Bool = false) -> [(
        question: [String], counter: UInt64?, code: String
    )] {
        codes.enumerated().map {
            ([String(repeating: "\($0.offset)", count: 8)], counting ? UInt64($0.offset) : nil, $0.element)
        }
    }

    private static func mutual(
        _ first: String, _ second: String, _ codes: [String]
    ) -> [(question: [String], counter: UInt64?, code: String)] {
        codes.enumerated().map { (["\(first)\($0.offset)", "\(second)\($0.offset)"], nil, $0.element) }
    }

    static let series: [Series] = [
        Series(
            suite: "OCRA-1:HOTP-SHA1-6:QN08", key: key20,
            rows: repeated([
                "237653", "243178", "653583", "740991", "608993", "388898", "816933", "224598", "750600", "294470",
            ])),
        Series(
            suite: "OCRA-1:HOTP-SHA256-8:C-QN08-PSHA1", key: key32,
            rows: [
                "65347737", "86775851", "78192410", "71565254", "10104329", "65983500", "70069104", "91771096",
                "75011558", "08522129",
            ].enumerated().map { (["12345678"], UInt64($0.offset), $0.element) }, pin: true),
        Series(
            suite: "OCRA-1:HOTP-SHA256-8:QN08-PSHA1", key: key32,
            rows: repeated(["83238735", "01501458", "17957585", "86776967", "86807031"]), pin: true),
        Series(
            suite: "OCRA-1:HOTP-SHA512-8:C-QN08", key: key64,
            rows: repeated(
                [
                    "07016083", "63947962", "70123924", "25341727", "33203315", "34205738", "44343969", "51946085",
                    "20403879", "31409299",
                ], counting: true)),
        Series(
            suite: "OCRA-1:HOTP-SHA512-8:QN08-T1M", key: key64,
            rows: repeated(["95209754", "55907591", "22048402", "24218844", "36209546"])),
        Series(
            suite: "OCRA-1:HOTP-SHA256-8:QA08", key: key32,
            rows: mutual("CLI2222", "SRV1111", ["28247970", "01984843", "65387857", "03351211", "83412541"])),
        Series(
            suite: "OCRA-1:HOTP-SHA256-8:QA08", key: key32,
            rows: mutual("SRV1111", "CLI2222", ["15510767", "90175646", "33777207", "95285278", "28934924"])),
        Series(
            suite: "OCRA-1:HOTP-SHA512-8:QA08", key: key64,
            rows: mutual("CLI2222", "SRV1111", ["79496648", "76831980", "12250499", "90856481", "12761449"])),
        Series(
            suite: "OCRA-1:HOTP-SHA512-8:QA08-PSHA1", key: key64,
            rows: mutual("SRV1111", "CLI2222", ["18806276", "70020315", "01600026", "18951020", "32528969"]), pin: true),
        Series(
            suite: "OCRA-1:HOTP-SHA256-8:QA08", key: key32,
            rows: ["53095496", "04110475", "31331128", "76028668", "46554205"].enumerated().map {
                (["SIG1\($0.offset)000"], nil, $0.element)
            }),
        Series(
            suite: "OCRA-1:HOTP-SHA512-8:QA10-T1M", key: key64,
            rows: ["77537423", "31970405", "10235557", "95213541", "65360607"].enumerated().map {
                (["SIG1\($0.offset)00000"], nil, $0.element)
            }),
    ]

    @Test("RFC 6287 appendix C", arguments: series)
    func vectors(series: Series) throws {
        let suite = try OCRASuite(series.suite)
        let ocra = try OCRA(suite: suite, secret: Secret(series.key))
        for row in series.rows {
            let input = OCRA.Input(
                challenges: row.question, counter: row.counter, pin: series.pin ? Secret("1234") : nil,
                time: suite.period == nil ? nil : Self.time)
            #expect(try ocra.code(input) == row.code)
            #expect(try ocra.matches(row.code, input))
            #expect(try !ocra.matches(String(row.code.dropLast()), input))
        }
    }

    @Test("A suite's name is read whole")
    func suite() throws {
        let suite = try OCRASuite("OCRA-1:HOTP-SHA512-0:C-QH40-PSHA256-S064-T48H")
        #expect(suite.algorithm == .sha512 && suite.digits == 0 && suite.usesCounter)
        #expect(suite.challengeFormat == .hexadecimal && suite.challengeLength == 40)
        #expect(suite.pinAlgorithm == .sha256 && suite.sessionLength == 64 && suite.period == 48 * 3600)
        #expect(try OCRASuite("OCRA-1:HOTP-SHA1-6:QN08-T20S").period == 20)
    }

    @Test(
        "A text that is not a suite is refused",
        arguments: [
            "", "OCRA-1", "OCRA-1:HOTP-SHA1-6", "OCRA-2:HOTP-SHA1-6:QN08", "OCRA-1:HOTP-MD5-6:QN08",
            "OCRA-1:HOTP-sha1-6:QN08", "OCRA-1:TOTP-SHA1-6:QN08", "OCRA-1:HOTP-SHA1-3:QN08", "OCRA-1:HOTP-SHA1-11:QN08",
            "OCRA-1:HOTP-SHA1-06:QN08", "OCRA-1:HOTP-SHA1--6:QN08", "OCRA-1:HOTP-SHA1-6:QX08",
            "OCRA-1:HOTP-SHA1-6:QN03",
            "OCRA-1:HOTP-SHA1-6:QN65", "OCRA-1:HOTP-SHA1-6:QN8", "OCRA-1:HOTP-SHA1-6:C", "OCRA-1:HOTP-SHA1-6:QN08-C",
            "OCRA-1:HOTP-SHA1-6:QN08-PMD5", "OCRA-1:HOTP-SHA1-6:QN08-S000", "OCRA-1:HOTP-SHA1-6:QN08-S64",
            "OCRA-1:HOTP-SHA1-6:QN08-S513", "OCRA-1:HOTP-SHA1-6:QN08-T0H", "OCRA-1:HOTP-SHA1-6:QN08-T60S",
            "OCRA-1:HOTP-SHA1-6:QN08-T49H", "OCRA-1:HOTP-SHA1-6:QN08-T1D", "OCRA-1:HOTP-SHA1-6:QN08-T01M",
            "OCRA-1:HOTP-SHA1-6:QN08-T1M-PSHA1", "OCRA-1:HOTP-SHA1-6:QN08-T1M-T1M", "OCRA-1:HOTP-SHA1-6:QN08:",
            "OCRA-1:HOTP-SHA1-6:QN08-", "OCRA-1:HOTP-SHA1-6:-QN08", "OCRA-1:HOTP-SHA1-6:QN+8",
            "OCRA-1:HOTP-SHA1-6:QN08-T99999999999999999999M",
        ])
    func invalidSuite(name: String) {
        #expect(throws: OTPError(.invalidSuite)) { try OCRASuite(name) }
    }

    @Test("Inputs must be exactly those that the suite names")
    func inputs() throws {
        let ocra = try OCRA(suite: OCRASuite("OCRA-1:HOTP-SHA256-8:C-QN08-PSHA1"), secret: Secret(Self.key32))
        let pin = Secret("1234")
        let bad: [OCRA.Input] = [
            .init(challenges: ["12345678"], counter: 0), .init(challenges: ["12345678"], pin: pin),
            .init(challenges: ["12345678"], counter: 0, pin: pin, session: [1]),
            .init(challenges: ["12345678"], counter: 0, pin: pin, time: Self.time),
            .init(challenges: [], counter: 0, pin: pin), .init(challenges: [""], counter: 0, pin: pin),
            .init(challenges: ["123456789"], counter: 0, pin: pin),
            .init(challenges: ["1234567a"], counter: 0, pin: pin),
            .init(challenges: ["1", "2", "3"], counter: 0, pin: pin), .init(challenges: ["-1"], counter: 0, pin: pin),
        ]
        for input in bad { #expect(throws: OTPError(.invalidInput)) { try ocra.code(input) } }
    }

    @Test("Each input changes the code")
    func inputsMatter() throws {
        let name = "OCRA-1:HOTP-SHA256-10:C-QH08-PSHA256-S008-T1M"
        let ocra = try OCRA(suite: OCRASuite(name), secret: Secret(Self.key32))
        let base = OCRA.Input(
            challenges: ["abcdef01"], counter: 1, pin: Secret("1234"), session: [1, 2, 3], time: Self.time)
        var codes: Set<String> = [try ocra.code(base)]
        var other = base
        other.challenges = ["abcdef02"]
        codes.insert(try ocra.code(other))
        other = base
        other.counter = 2
        codes.insert(try ocra.code(other))
        other = base
        other.pin = Secret("1235")
        codes.insert(try ocra.code(other))
        other = base
        other.session = [1, 2, 3, 0]
        codes.insert(try ocra.code(other))
        other = base
        other.time = Self.time + 60
        codes.insert(try ocra.code(other))
        #expect(codes.count == 6)
        other = base
        other.session = [UInt8](repeating: 1, count: 9)
        #expect(throws: OTPError(.invalidInput)) { try ocra.code(other) }
        // Shorter session information is padded on the left.
        other.session = [0, 0, 1, 2, 3]
        #expect(try ocra.code(other) == ocra.code(base))
    }

    @Test("Without truncation the whole code comes back")
    func untruncated() throws {
        let ocra = try OCRA(suite: OCRASuite("OCRA-1:HOTP-SHA512-0:QN64"), secret: Secret(Self.key64))
        let code = try ocra.code(
            .init(challenges: [String(repeating: "9", count: 64), String(repeating: "9", count: 64)]))
        #expect(Hex.decode(code)?.count == 64)
    }
}
