import AssentCore
import Testing

@Suite("FormEncoding")
struct FormEncodingTests {
    @Test("What would be taken for syntax is encoded")
    func written() {
        let form: KeyValuePairs = ["a b": "+&=%", "é": "😀", "empty": "", "~-._": "/?#"]
        #expect(
            FormEncoding.encode(form) == "a%20b=%2B%26%3D%25&%C3%A9=%F0%9F%98%80&empty=&~-._=%2F%3F%23")
    }

    @Test(
        "Forms are read",
        arguments: [
            ("", []), ("a=b", [("a", "b")]), ("a=b&c=d", [("a", "b"), ("c", "d")]), ("a", [("a", "")]),
            ("a=", [("a", "")]),
            ("=b", [("", "b")]), ("a=b=c", [("a", "b=c")]), ("a+b=c+d", [("a b", "c d")]),
            ("a%20b=%2B%26", [("a b", "+&")]),
            ("&&a=b&", [("a", "b")]), ("%C3%a9=%e2%82%AC", [("é", "€")]), ("a=1&a=2", [("a", "1"), ("a", "2")]),
            ("a=%0D%0A", [("a", "\r\n")]),
        ] as [(String, [(String, String)])])
    func read(text: String, expected: [(String, String)]) throws {
        #expect(try FormEncoding.parse(text) == FormItems(expected.map { .init($0.0, $0.1) }))
    }

    @Test(
        "Broken forms are refused, not repaired",
        arguments: [
            "a=%", "a=%2", "a=%zz", "%=a", "a=%C3", "a=%80", "a=%00", "a b=c", "a=é", "a=b\n", "a=%u0041", "a=%+1",
            "a=\u{0}", "a=%ED%A0%80",
        ])
    func broken(text: String) {
        #expect(throws: WireError(.malformed, "")) { try FormEncoding.parse(text) }
    }

    @Test("A repeated name is reported and gives no value")
    func duplicates() throws {
        let form = try FormEncoding.parse("a=1&b=2&%61=3&c=&a=1")
        #expect(form.duplicateNames == ["a"])
        #expect(form["a"] == nil)
        #expect(form[all: "a"] == ["1", "3", "1"])
        #expect(form["b"] == "2")
        #expect(try form.single("c") == "")
        #expect(try form.single("d") == nil)
        #expect(throws: WireError(.duplicate, "")) { try form.single("a") }
        #expect(try FormEncoding.parse("%C3%A9=1&e%CC%81=2").duplicateNames == [])
    }

    @Test("Size and number of items are bounded")
    func bounds() throws {
        let limits = FormEncoding.Limits(bytes: 7, items: 2)
        #expect(try FormEncoding.parse("a=1&b=2", limits: limits).items.count == 2)
        #expect(throws: WireError(.tooLarge, "")) { try FormEncoding.parse("a=1&b=22", limits: limits) }
        #expect(throws: WireError(.tooMany, "")) { try FormEncoding.parse("a&b&c", limits: limits) }
    }

    @Test("A description shows no item")
    func description() {
        #expect("\(FormItems(["password": "hunter2"]))" == "1 form items")
    }

    @Test("Whatever is changed, it is refused or survives writing and reading")
    func mutations() throws {
        let seeds = ["grant_type=authorization_code&code=a%2Bb&redirect_uri=https%3A%2F%2Fx%2F", "a+b=%C3%A9&a=1&&=x"]
        try Mutations.of(seeds, count: 6000) { text throws in
            guard let form = try? FormEncoding.parse(text) else { return }
            #expect(try FormEncoding.parse(FormEncoding.encode(form)) == form)
        }
    }
}

@Suite("RequestTarget")
struct RequestTargetTests {
    @Test("A target is taken apart without changing it")
    func parts() throws {
        let text = "/a/../b%2fc//d;x?q=1&&q=%zz&Q=+&e=&f?g"
        let target = try RequestTarget(text)
        #expect(target.path == "/a/../b%2fc//d;x")
        #expect(target.text == text)
        let query = try #require(target.query)
        #expect(query.items.map(\.text) == ["q=1", "", "q=%zz", "Q=+", "e=", "f?g"])
        #expect(query[all: "q"] == ["1"])
        #expect(query[all: "Q"] == [" "])
        #expect(!query.isWellFormed)
        #expect(throws: WireError(.duplicate, "")) { try query.single("q") }
        #expect(try query.single("e") == "")
        #expect(try query.single("none") == nil)
        #expect(throws: WireError(.malformed, "")) { try QueryString("a=%z").single("a") }
    }

    @Test("No query is something else than an empty one")
    func emptyQuery() throws {
        #expect(try RequestTarget("/a").query == nil)
        #expect(try RequestTarget("/a?").query?.items == [])
        #expect(try RequestTarget("/a?").text == "/a?")
    }

    @Test(
        "One item is removed however it was encoded, the others stay as they were",
        arguments: [
            ("/a?_txid=1", "/a"), ("/a?b=%20+&_txid=1", "/a?b=%20+"), ("/a?_txid=1&b=%2f", "/a?b=%2f"),
            ("/a?%5ftxid=1&%5Ftx%69d=2&_txid&b", "/a?b"), ("/a?_TXID=1", "/a?_TXID=1"), ("/a?", "/a?"), ("/a", "/a"),
            ("/_txid=1?x=_txid=1", "/_txid=1?x=_txid=1"), ("/a?&_txid=1", "/a?"),
        ])
    func removal(text: String, expected: String) throws {
        #expect(try RequestTarget(text).removing("_txid").text == expected)
    }

    @Test(
        "What is no target is refused",
        arguments: ["", "a", "http://h/", "*", "?a", "/a b", "/a#b", "/ä", "/a\u{0}", "/a\r\nX: y", "/a\u{7F}"])
    func malformed(text: String) {
        #expect(throws: WireError(.malformed, "")) { try RequestTarget(text) }
    }

    @Test("The length is bounded")
    func length() {
        #expect(throws: WireError(.tooLarge, "")) { try RequestTarget("/" + String(repeating: "a", count: 8 << 10)) }
    }

    @Test(
        "An item goes to the end of the query and before the fragment",
        arguments: [
            ("https://h/p", "https://h/p?_txid=a%26b"), ("https://h/p?x=1", "https://h/p?x=1&_txid=a%26b"),
            ("https://h/p?", "https://h/p?_txid=a%26b"), ("https://h/p?x&", "https://h/p?x&_txid=a%26b"),
            ("https://h/p#f?g", "https://h/p?_txid=a%26b#f?g"),
            ("https://h/p?x=%zz#f", "https://h/p?x=%zz&_txid=a%26b#f"),
            ("", "?_txid=a%26b"),
        ])
    func appending(url: String, expected: String) {
        #expect(URLText.appending("_txid", "a&b", to: url) == expected)
    }

    @Test("Query and rest of a URL are found beside a fragment")
    func urlParts() {
        #expect(URLText.query(of: "https://h/p?a=1#b?c")?.text == "a=1")
        #expect(URLText.query(of: "https://h/p#b?c") == nil)
        #expect(URLText.withoutQuery("https://h/p?a#b") == "https://h/p")
        #expect(URLText.withoutQuery("https://h/p#b?a") == "https://h/p")
    }

    @Test("Percent-encoding goes both ways for every character and decodes no broken escape")
    func percent() {
        for code in UInt32(0)...0x2FFF {
            guard let scalar = Unicode.Scalar(code) else { continue }
            let text = String(Character(scalar))
            #expect(PercentEncoding.decode(PercentEncoding.encode(text))?.utf8.elementsEqual(text.utf8) == true)
        }
        #expect(PercentEncoding.decode("a+b") == "a+b")
        #expect(PercentEncoding.decode("a+b", plusIsSpace: true) == "a b")
        for broken in ["%", "%a", "%ag", "%-1", "%ff", "%%20"] { #expect(PercentEncoding.decode(broken) == nil) }
    }
}
