import Testing

@testable import AssentCLI

@Suite("What the command line writes")
struct ConsoleTests {
    @Test(
        "A terminal is shown colours unless NO_COLOR has a value, or the terminal is dumb",
        arguments: [
            ([:], true), (["TERM": "xterm"], true), (["NO_COLOR": ""], true), (["NO_COLOR": "1"], false),
            (["NO_COLOR": "0"], false), (["TERM": "dumb"], false), (["NO_COLOR": "", "TERM": "dumb"], false),
        ] as [([String: String], Bool)])
    func colours(environment: [String: String], wanted: Bool) {
        #expect(Console.wantsColours(environment) == wanted)
    }
}
