"""Work in extensions that call Python, and are called by it: lxml and cryptography."""

from cryptography.fernet import Fernet
from lxml import etree

KEY = Fernet(Fernet.generate_key())


class Upper(etree.XSLTExtension):
    def execute(self, context, self_node, input_node, output_parent):
        output_parent.text = (input_node.text or "").upper()


STYLE = etree.XSLT(
    etree.XML("""<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"
    xmlns:m="m" extension-element-prefixes="m">
    <xsl:template match="/"><out><xsl:apply-templates select="//item"/></out></xsl:template>
    <xsl:template match="item"><item><m:upper/></item></xsl:template></xsl:stylesheet>"""),
    extensions={("m", "upper"): Upper()},
)


def document(count):
    root = etree.Element("root")
    for number in range(count):
        etree.SubElement(root, "item", n=str(number)).text = f"item {number}"
    return root


def work():
    root = document(200)
    changed = STYLE(root)
    found = changed.xpath("//item[contains(text(), '7')]")
    token = KEY.encrypt(etree.tostring(changed))
    etree.fromstring(KEY.decrypt(token))
    return len(found)


while True:
    work()
