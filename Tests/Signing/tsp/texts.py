"""Which texts may be shown to a user."""
import unicodedata

# Default_Ignorable_Code_Point of Unicode's DerivedCoreProperties.txt, as far as the categories below leave it.
IGNORABLE = [(0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x3164, 0x3164),
             (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)]
# Nothing is seen of these.
INVISIBLE = [(0x1680, 0x1680), (0x2000, 0x200A), (0x205F, 0x205F), (0x2800, 0x2800), (0xFFFC, 0xFFFC),
             (0x13441, 0x13442), (0x1D159, 0x1D159)]
# The last one are marks around the character before them.
REFUSED = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Me"}
# The combining class of marks that strike out the character before them.
OVERLAY = 1


def can_be_shown(text):
    marks = 0
    for at, character in enumerate(text):
        number = ord(character)
        category = unicodedata.category(character)
        if category in REFUSED or unicodedata.combining(character) == OVERLAY:
            return False
        if any(low <= number <= high for low, high in IGNORABLE + INVISIBLE):
            return False
        marks = marks + 1 if category == "Mn" else 0
        if marks > 3 or (marks and at == 0):
            return False
    return True
