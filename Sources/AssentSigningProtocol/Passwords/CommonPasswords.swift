import AssentCore

/// Passwords that many people choose: those that somebody with a phone in the hand tries first.
enum CommonPasswords {
    /// Whether a password in small letters is one of them, or a date.
    static func contains(_ password: String) -> Bool {
        list.contains(password) || isDate(password)
    }

    /// Four to eight digits for the most part, and the words that lead every list of stolen passwords.
    private static let list: Set<String> = Set(
        """
        1234 1111 0000 1212 7777 1004 2000 4444 2222 6969 9999 3333 5555 6666 1122 1313 8888 4321 2001 1010
        2580 0852 1590 7410 0258 1379 2468 1357 8520 9876 6789 3210 4567 5678 2345 3456 0123 7890 1236 1478
        1598 7530 0007 0070 4200 0420 1984 1987 1990 5683 5150 2112 1123 1221 1233 1235 1112 1113 2323 3232
        2121 3131 4545 5454 6565 7878 8989 9898 1001 0101 0909 0808 2525 5252 1414 1515 1616 1717 1818 1919
        12345 11111 55555 00000 54321 13579 77777 22222 12321 99999 33333 00700 90210 88888 38317 09876 44444
        98765 01234 42069 12344 66666 52000 24680 86420 10101 11223 14789 25800 12340
        123456 123123 111111 121212 123321 666666 000000 654321 696969 112233 159753 292513 131313 123654 222222
        789456 999999 101010 777777 007007 555555 456789 147258 987654 333333 888888 789789 159357 147852 258456
        252525 456123 321321 456456 141414 232323 202020 111222 112211 147147 151515 242424 369369 420420 520520
        124578 134679 963852 741852 852456 159951 987321 789123 102030 010203 098765 246810 135790 135791 369258
        1234567 7777777 8675309 1111111 9999999 1234568 7654321 1112233 5201314 1472583
        12345678 11111111 87654321 12341234 11223344 88888888 00000000 12121212 31415926 27182818 14725836
        11235813 13131313 12344321 98765432 23456789 55555555 99999999 66666666 77777777 147258369 123456789
        987654321 123123123 789456123 1234567890 0987654321 1357924680 2718281828 3141592653
        password passw0rd password1 qwerty qwerty123 qwerty1 abc123 abcd1234 a1b2c3 1q2w3e 1q2w3e4r 1qaz2wsx
        letmein welcome monkey dragon master iloveyou admin secret login hello princess sunshine football
        """.split { $0 == " " || $0 == "\n" }.map(String.init))

    /// Whether digits are a day and a month, a year, or a day with month and year, in any usual order.
    static func isDate(_ text: String) -> Bool {
        let digits = text.utf8.map { Int($0) - 48 }
        guard text.utf8.allSatisfy(\.isASCIIDigit) else { return false }
        func two(_ place: Int) -> Int { digits[place] * 10 + digits[place + 1] }
        func isYear(_ place: Int) -> Bool { (1900...2049).contains(two(place) * 100 + two(place + 2)) }
        func isDay(_ day: Int, _ month: Int) -> Bool {
            (1...12).contains(month) && (1...[31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1]).contains(day)
        }
        func areDayAndMonth(_ place: Int) -> Bool {
            isDay(two(place), two(place + 2)) || isDay(two(place + 2), two(place))
        }
        switch digits.count {
        case 4: return isYear(0) || areDayAndMonth(0)
        case 6: return areDayAndMonth(0) || areDayAndMonth(2)
        case 8: return areDayAndMonth(0) && isYear(4) || isYear(0) && areDayAndMonth(4)
        default: return false
        }
    }
}
