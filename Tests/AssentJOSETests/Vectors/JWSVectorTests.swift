import AssentCore
import AssentJOSE
import Foundation
import Testing

@Suite("JWS: published examples")
struct JWSVectorTests {
    static let claims =
        "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"

    @Test("RFC 7515 A.1: HS256")
    func hs256() throws {
        let key = try #require(
            Base64URL.decode(
                "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"))
        let text =
            "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.\(Self.claims).dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
        let message = try UnverifiedJWS.parse(text).verified(hmacKey: Secret(bytes: key))
        #expect(message.type == "JWT")
        #expect(message.key == nil)
        let claims = try JWTClaims(payload: message.payload)
        #expect(claims.iss == "joe")
        #expect(claims.exp?.timeIntervalSince1970 == 1_300_819_380)
        #expect(claims["http://example.com/is_root"] == true)
    }

    struct Example: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let algorithm: SignatureAlgorithm
        let key: JSONValue
        let text: String
    }

    static let examples: [Example] = [
        Example(
            testDescription: "RFC 7515 A.2: RS256", algorithm: .rs256,
            key: [
                "kty": "RSA",
                "n": .string(
                    "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SF"
                        + "d2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTB"
                        + "EMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2"
                        + "PAcDTW9gb54h4FRWyuXpoQ"),
                "e": "AQAB",
            ],
            text: "eyJhbGciOiJSUzI1NiJ9.\(claims)."
                + "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdb"
                + "F9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383"
                + "LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWy"
                + "wlVmtVrBp0igcN_IoypGlUPQGe77Rw"),
        Example(
            testDescription: "RFC 7515 A.3: ES256", algorithm: .es256,
            key: [
                "kty": "EC", "crv": "P-256", "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
                "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
            ],
            text: "eyJhbGciOiJFUzI1NiJ9.\(claims)."
                + "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"),
        Example(
            testDescription: "RFC 7515 A.4: ES512", algorithm: .es512,
            key: [
                "kty": "EC", "crv": "P-521",
                "x": "AekpBQ8ST8a8VcfVOTNl353vSrDCLLJXmPk06wTjxrrjcBpXp5EOnYG_NjFZ6OvLFV1jSfS9tsz4qUxcWceqwQGk",
                "y": "ADSmRA43Z1DSNx_RvcLI87cdL07l6jQyyBXMoxVg_l2Th-x3S1WDhjDly79ajL4Kkd0AZMaZmh9ubmf63e3kyMj2",
            ],
            text: "eyJhbGciOiJFUzUxMiJ9.UGF5bG9hZA."
                + "AdwMgeerwtHoh-l192l60hp9wAHZFVJbLfD_UxMi70cwnZOYaRI1bKPWROc-mZZqwqT2SI-KGDKB34XO0aw_7XdtAG8GaSwFKdCAPZgo"
                + "XD2YBJZCPEX3xKpRwcdOO8KpEHwJjyqOgzDO7iKvU8vcnwNrmxYbSW9ERBXukOXolLzeO_Jn"),
        Example(
            testDescription: "RFC 8037 A.4: EdDSA", algorithm: .edDSA,
            key: ["kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"],
            text: "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc."
                + "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"),
    ]

    @Test("A signature out of an RFC is good", arguments: examples)
    func verifies(example: Example) throws {
        let key = try JWK(example.key)
        let message = try UnverifiedJWS.parse(example.text).verified(with: key, algorithms: [example.algorithm])
        #expect(message.algorithm == example.algorithm)
        #expect(message.key == key)
        let set = try JWKSet(["keys": [example.key]])
        #expect(throws: Never.self) {
            try UnverifiedJWS.parse(example.text).verified(with: set, algorithms: [example.algorithm])
        }
    }

    @Test("RFC 7515 A.5: an unsecured message is refused")
    func none() {
        #expect(throws: JOSEError(.unsupportedAlgorithm)) {
            try UnverifiedJWS.parse("eyJhbGciOiJub25lIn0.\(Self.claims).")
        }
    }

    @Test("RFC 8037 A.4: the private key signs the same message the same way")
    func edDSASigning() async throws {
        let seed = try #require(Base64URL.decode("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"))
        // PKCS#8 as in RFC 8410 §10.3, with this seed.
        let der: [UInt8] = [0x30, 0x2E, 2, 1, 0, 0x30, 5, 6, 3, 0x2B, 0x65, 0x70, 4, 0x22, 4, 0x20] + seed
        let key = try SoftwareSigningKey(algorithm: .edDSA, privateKey: Secret(bytes: der))
        let example = try #require(Self.examples.last)
        #expect(try await JWS.sign(Array("Example of Ed25519 signing".utf8), with: key) == example.text)
        #expect(try JWK(publicKeyInfo: key.publicKeyInfo) == JWK(example.key))
    }
}

@Suite("JWK: published thumbprints")
struct ThumbprintVectorTests {
    @Test("RFC 7638 §3.1: RSA")
    func rsa() throws {
        let key = try JWK([
            "kty": "RSA",
            "n": .string(
                "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3"
                    + "oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdA"
                    + "ZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-"
                    + "kEgU8awapJzKnqDKgw"),
            "e": "AQAB", "alg": "RS256", "kid": "2011-04-29",
        ])
        #expect(key.thumbprint == "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs")
    }

    @Test("RFC 8037 A.3: Ed25519")
    func ed25519() throws {
        let key = try JWK(["kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"])
        #expect(key.thumbprint == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k")
    }
}
